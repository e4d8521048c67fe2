package org.gristway.cli;

import java.util.Arrays;
import java.util.stream.LongStream;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlannedOrder;
import org.gristway.plan.policy.Policies;
import org.gristway.snapshot.Snapshot;

/** What can be seen of an order in which samples are delivered. */
final class DemoOrders {

  private final Snapshot snapshot;
  private final PlanInputs inputs;
  private final ExtentCuts cuts;

  DemoOrders(Snapshot snapshot, PlanInputs inputs) {
    this.snapshot = snapshot;
    this.inputs = inputs;
    this.cuts = inputs.cuts();
  }

  /** Every sample in the order in which they lie on the disk: no shuffle at all. */
  long[] onDisk() {
    return LongStream.range(0, snapshot.sampleCount()).toArray();
  }

  /** Every sample in the order of names: the files as they are listed. */
  long[] byName() {
    return LongStream.range(0, snapshot.sampleCount()).map(snapshot::inKeyOrder).toArray();
  }

  /** The order of a whole epoch, also where the run of it was stopped before its end. */
  long[] whole(DemoRun run, String policy) {
    if (run.complete()) {
      return run.order();
    }
    PlannedOrder planned = new PlannedOrder(Policies.named(policy).plan(inputs, 0));
    long[] order = new long[(int) snapshot.sampleCount()];
    int at = 0;
    for (Deliver[][] step = planned.next(); step != null; step = planned.next()) {
      for (Deliver deliver : step[0]) {
        order[at++] = deliver.sample();
      }
    }
    return order;
  }

  /** Where samples lie on the disk against where they come in the epoch, both in percent. */
  Points scatter(long[] order, int most) {
    int count = Math.min(most, order.length);
    double[] xs = new double[count];
    double[] ys = new double[count];
    for (int i = 0; i < count; i++) {
      int position = (int) ((long) i * order.length / count);
      xs[i] = percent(position);
      ys[i] = percent(order[position]);
    }
    return new Points(xs, ys);
  }

  /**
   * Where in the epoch, in percent, the samples of a few extents come: each extent is a row, and
   * there are as many as rows or more.
   */
  Points neighbours(long[] order, int rows) {
    int[] positions = new int[(int) snapshot.sampleCount()];
    Arrays.fill(positions, -1);
    for (int i = 0; i < order.length; i++) {
      positions[(int) order[i]] = i;
    }
    double[] xs = new double[positions.length];
    double[] ys = new double[positions.length];
    int count = 0;
    for (int row = 0; row < rows; row++) {
      long extent = row * cuts.count() / rows;
      for (long id = cuts.firstSample(extent); id < cuts.firstSample(extent + 1); id++) {
        if (positions[(int) id] >= 0) {
          xs[count] = percent(positions[(int) id]);
          ys[count] = row + 0.5;
          count++;
        }
      }
    }
    return new Points(Arrays.copyOf(xs, count), Arrays.copyOf(ys, count));
  }

  private double percent(long number) {
    return 100.0 * number / snapshot.sampleCount();
  }

  /** The share of each label in each full batch. */
  double[][] labelShares(long[] order, int labels) {
    int size = DemoTrainer.BATCH_SIZE;
    double[][] shares = new double[order.length / size][labels];
    for (int batch = 0; batch < shares.length; batch++) {
      for (int i = batch * size; i < (batch + 1) * size; i++) {
        shares[batch][snapshot.label(order[i])] += 1.0 / size;
      }
    }
    return shares;
  }
}
