package org.gristway.cli;

import java.util.function.LongUnaryOperator;
import org.gristway.Progress;
import org.gristway.plan.LabelCounts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.Shares;

/**
 * Between what the orders of policies lie.
 *
 * @param floor the order as packed, in every epoch: no shuffle at all
 * @param ceiling a full shuffle: the requested order
 */
record OrderBounds(OrderMeasures floor, OrderMeasures ceiling) {

  /** Measures both, dealt to ranks and batches as policies deal theirs. */
  static OrderBounds of(PlanInputs inputs, long epoch, LabelCounts labels, Progress progress) {
    progress.begin("shuffling", Progress.Unit.SAMPLES, 4 * inputs.shares().samples());
    LongUnaryOperator packed = inputs.samples()::nth;
    return new OrderBounds(
        measure(inputs, labels, packed, packed, progress),
        measure(
            inputs, labels, inputs.requests(epoch)::at, inputs.requests(epoch + 1)::at, progress));
  }

  private static OrderMeasures measure(
      PlanInputs inputs,
      LabelCounts labels,
      LongUnaryOperator order,
      LongUnaryOperator next,
      Progress progress) {
    Shares shares = inputs.shares();
    int ranks = inputs.world().ranks();
    try (OrderMeter meter = new OrderMeter(inputs, labels)) {
      for (long step = 0; step < shares.steps(); step++) {
        meter.add(batches(shares, ranks, step, order, progress));
        meter.addNext(batches(shares, ranks, step, next, progress));
      }
      return meter.measures();
    }
  }

  private static long[][] batches(
      Shares shares, int ranks, long step, LongUnaryOperator order, Progress progress) {
    long[][] batches = new long[ranks][];
    for (int rank = 0; rank < ranks; rank++) {
      long first = shares.firstRequest(rank, step);
      batches[rank] = new long[shares.fresh(rank, step)];
      for (int i = 0; i < batches[rank].length; i++) {
        batches[rank][i] = order.applyAsLong(first + i);
      }
      progress.advance(batches[rank].length);
    }
    return batches;
  }
}
