package org.gristway.cli;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gristway.Progress;
import org.gristway.plan.LabelCounts;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlannedOrder;
import org.gristway.plan.ReadPlan;
import org.jspecify.annotations.Nullable;

/**
 * What an epoch would do, found by going through its plan.
 *
 * @param frames of a node
 * @param samples that are delivered, repeats not counted
 * @param movedBytes from one node to another
 * @param peakResidentBytes the most memory in use at once, on all nodes: frames, and what is kept
 * @param memory in use over the epoch, in bytes
 * @param orderDigest the one that {@code read} gives for the same inputs
 */
record PlannedEpoch(
    long steps,
    int frames,
    long samples,
    long storageReads,
    long storageBytes,
    long movedBytes,
    long peakResidentBytes,
    long redirected,
    OrderMeasures order,
    Points memory,
    String orderDigest) {

  /**
   * Goes through a plan.
   *
   * @param next the plan of the epoch after it
   */
  static PlannedEpoch of(
      ReadPlan plan, ReadPlan next, LabelCounts labels, @Nullable OrderFile file, Progress progress)
      throws IOException {
    try (OrderMeter meter = new OrderMeter(plan.inputs(), labels)) {
      PlannedOrder after = new PlannedOrder(next, false);
      for (Deliver[][] step = after.next(); step != null; step = after.next()) {
        meter.addNext(fresh(step, progress));
      }
      return of(plan, meter, file, progress);
    }
  }

  private static PlannedEpoch of(
      ReadPlan plan, OrderMeter meter, @Nullable OrderFile file, Progress progress)
      throws IOException {
    PlannedOrder planned = new PlannedOrder(plan, plan.epoch() == 0);
    List<OrderDigest> digests = new ArrayList<>();
    for (int rank = 0; rank < plan.inputs().world().ranks(); rank++) {
      digests.add(new OrderDigest());
    }
    EpochBins bins = new EpochBins(plan.steps());
    double[] memory = new double[bins.count()];
    long steps = 0;
    long samples = 0;
    long redirected = 0;
    for (Deliver[][] step = planned.next(); step != null; step = planned.next()) {
      int bin = bins.of(steps++);
      memory[bin] = Math.max(memory[bin], planned.stepResidentBytes());
      for (int rank = 0; rank < step.length; rank++) {
        redirected += add(step[rank], plan.epoch(), digests.get(rank), file);
      }
      long[][] ofRanks = fresh(step, progress);
      for (long[] batch : ofRanks) {
        samples += batch.length;
      }
      meter.add(ofRanks);
    }
    return new PlannedEpoch(
        plan.steps(),
        plan.frames(),
        samples,
        planned.reads(),
        planned.bytes(),
        planned.movedBytes(),
        planned.peakResidentBytes(),
        redirected,
        meter.measures(),
        bins.levels(memory),
        OrderDigest.of(digests.stream().map(OrderDigest::end).toList()));
  }

  /** Notes a batch; how many of its samples are not the requested ones. */
  private static long add(
      Deliver[] batch, long epoch, OrderDigest digest, @Nullable OrderFile order)
      throws IOException {
    long redirected = 0;
    digest.batch(batch.length);
    for (Deliver place : batch) {
      digest.place(place.sample(), place.repeat());
      redirected += place.repeat() || place.sample() == place.request() ? 0 : 1;
      if (order != null) {
        order.write(epoch, place.step(), place.rank(), place.request(), place.sample());
      }
    }
    return redirected;
  }

  /** The samples of each rank, without repeats. */
  static long[][] fresh(Deliver[][] step, Progress progress) {
    long[][] ofRanks = new long[step.length][];
    for (int rank = 0; rank < step.length; rank++) {
      ofRanks[rank] =
          Arrays.stream(step[rank])
              .filter(place -> !place.repeat())
              .mapToLong(Deliver::sample)
              .toArray();
      progress.advance(ofRanks[rank].length);
    }
    return ofRanks;
  }
}
