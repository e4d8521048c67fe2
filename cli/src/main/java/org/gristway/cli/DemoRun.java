package org.gristway.cli;

import java.util.Arrays;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.Quality;

/**
 * What came of training an epoch on one way of reading.
 *
 * @param name of that way
 * @param bytes of all samples that were delivered
 * @param nanos that it took
 * @param stallNanos of those: that the trainer waited for data
 * @param complete whether it was the whole epoch, and not stopped for the time it took
 * @param order the ids of the samples in the order of their delivery
 * @param steps one for each batch
 * @param cost of the reading
 */
record DemoRun(
    String name,
    long bytes,
    long nanos,
    long stallNanos,
    boolean complete,
    long[] order,
    Step[] steps,
    DemoFeed.Cost cost) {

  /**
   * How things stood when a batch had come.
   *
   * @param nanos since the beginning
   * @param samples delivered until then
   * @param stallNanos that the trainer had waited until then
   * @param residentBytes the memory used then, beside the batches
   */
  record Step(long nanos, int samples, long stallNanos, long residentBytes) {}

  int samples() {
    return order.length;
  }

  double seconds() {
    return nanos / 1e9;
  }

  double samplesPerSecond() {
    return samples() / seconds();
  }

  double bytesPerSecond() {
    return bytes / seconds();
  }

  /** Which part of its time the trainer waited. */
  double stallShare() {
    return (double) stallNanos / nanos;
  }

  /** How long the trainer had waited when a part of the samples had come. */
  long stallNanosUntil(int ofSamples) {
    long stalled = 0;
    for (Step step : steps) {
      stalled = step.stallNanos();
      if (step.samples() >= ofSamples) {
        break;
      }
    }
    return stalled;
  }

  /** How well its order is shuffled. */
  Quality.Report quality(ExtentCuts cuts) {
    return quality(order, cuts);
  }

  static Quality.Report quality(long[] order, ExtentCuts cuts) {
    Quality quality = new Quality(cuts);
    int size = DemoTrainer.BATCH_SIZE;
    for (int start = 0; start < order.length; start += size) {
      long[] batch = Arrays.copyOfRange(order, start, Math.min(start + size, order.length));
      quality.add(new long[][] {batch});
    }
    return quality.report();
  }
}
