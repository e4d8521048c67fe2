package org.gristway.plan.policy;

import java.util.function.LongConsumer;
import org.gristway.plan.Permutation;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.SampleSet;
import org.gristway.plan.Shares;

/**
 * Which rank is asked for a sample in which epoch, for a stretch of epochs and all samples: what is
 * known before a run begins. Immutable, for any thread; an answer takes a tenth of a microsecond.
 */
final class Accesses {

  /** No rank: the sample is left out of the epoch. */
  static final int NOBODY = -1;

  private final Shares shares;
  private final Permutation[] orders;

  Accesses(PlanInputs inputs, long firstEpoch, int epochs) {
    PlanInputs whole = inputs.with(SampleSet.all(inputs.layout().sampleCount()), 0);
    this.shares = whole.shares();
    this.orders = new Permutation[epochs];
    for (int i = 0; i < epochs; i++) {
      orders[i] = whole.requests(firstEpoch + i).order();
    }
  }

  int epochs() {
    return orders.length;
  }

  /** How many samples a rank is asked for in an epoch. */
  long of(int rank) {
    return shares.of(rank);
  }

  /** All samples that a rank is asked for in an epoch of the stretch, in that order. */
  void forEach(int rank, int epoch, LongConsumer visitor) {
    for (long step = 0; step < shares.steps(); step++) {
      long first = shares.firstRequest(rank, step);
      for (int i = 0; i < shares.fresh(rank, step); i++) {
        visitor.accept(orders[epoch].at(first + i));
      }
    }
  }

  /**
   * How many samples a rank is asked for before this one, in an epoch in which it gets this one.
   *
   * @param epoch counted from the first of the stretch
   */
  long before(int rank, long sample, int epoch) {
    return shares.beforeRequest(rank, orders[epoch].indexOf(sample));
  }

  /** The rank that gets a sample in an epoch, counted from the first of the stretch. */
  int rank(long sample, int epoch) {
    return shares.rankOf(orders[epoch].indexOf(sample));
  }
}
