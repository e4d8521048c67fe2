package org.gristway.plan.policy;

import java.util.Arrays;
import org.gristway.plan.PlanInputs;

/**
 * Which samples each rank keeps, and in which tier: those that are worth most to keep there over a
 * stretch of epochs ({@link KeepingOrder}), in memory until that is full, then on its disk. A rank
 * keeps a sample from the first time that it is asked for it to the end of the stretch.
 */
final class Placement {

  private static final int NOT_KEPT = SampleLane.NOT_KEPT;
  private static final int TIERS = 2;

  private final PlanInputs inputs;
  private final Accesses accesses;
  private final KeepingOrder order;
  private final TierTable table;

  /** Where the ranks stand while samples are dealt to tiers. */
  private final class Budgets {
    final int ranks = inputs.world().ranks();
    final long[] capacity; // by tier
    final long[][] bytes = new long[ranks][order.highest() + 1]; // by grade
    final int[][] lowest = new int[TIERS][ranks]; // higher grades: surely in the tier
    final long[][] ofLowest = new long[TIERS][ranks]; // the room for those of that grade
    final long[][] used = new long[TIERS][ranks];

    Budgets(long... capacity) {
      this.capacity = capacity;
    }

    void count(int rank, int grade, long length) {
      bytes[rank][grade] += length;
    }

    /** Fills the tiers from the highest grade down. */
    void cut() {
      for (int rank = 0; rank < ranks; rank++) {
        int grade = order.highest();
        long left = bytes[rank][grade]; // of those of this grade
        for (int tier = 0; tier < TIERS; tier++) {
          long room = capacity[tier];
          while (grade > 0 && left <= room) {
            room -= left;
            grade--;
            left = grade > 0 ? bytes[rank][grade] : 0;
          }
          lowest[tier][rank] = grade;
          ofLowest[tier][rank] = room;
          left -= room;
        }
      }
    }

    /** The tier for a sample of that grade. */
    int tier(int rank, int grade, long length) {
      for (int tier = 0; tier < TIERS; tier++) {
        boolean surely = grade > lowest[tier][rank];
        boolean perhaps = grade == lowest[tier][rank] && length <= ofLowest[tier][rank];
        if ((surely || perhaps) && used[tier][rank] + length <= capacity[tier]) {
          if (!surely) {
            ofLowest[tier][rank] -= length;
          }
          used[tier][rank] += length;
          return tier;
        }
      }
      return NOT_KEPT;
    }
  }

  /**
   * @param memory bytes of each rank for samples; the disk is as the settings say
   */
  Placement(PlanInputs inputs, Accesses accesses, KeepingOrder order, long memory) {
    this.inputs = inputs;
    this.accesses = accesses;
    this.order = order;
    this.table = new TierTable(inputs.layout().sampleCount(), accesses);
    Budgets budgets = new Budgets(memory, inputs.settings().caching().diskBytes());
    forEachKeeper(
        (sample, rank, grade, ranks) -> budgets.count(rank, grade, inputs.layout().length(sample)));
    budgets.cut();
    forEachKeeper(
        (sample, rank, grade, ranks) -> {
          int tier = budgets.tier(rank, grade, inputs.layout().length(sample));
          keep(sample, rank, tier, ranks);
        });
  }

  TierTable table() {
    return table;
  }

  private interface Visitor {
    /**
     * @param rank that may keep the sample, since it gets it in some epoch
     * @param grade of the sample to that rank
     * @param ranks that get the sample, by epoch
     */
    void visit(long sample, int rank, int grade, int[] ranks);
  }

  private void forEachKeeper(Visitor visitor) {
    int[] ranks = new int[accesses.epochs()];
    int[] times = new int[accesses.epochs()]; // by the first epoch in which a rank is asked
    for (long sample = 0; sample < inputs.layout().sampleCount(); sample++) {
      if (inputs.cuts().isLarge(inputs.layout().location(sample))) {
        continue; // no frame holds it for a tier to take
      }
      Arrays.fill(times, 0);
      for (int epoch = 0; epoch < ranks.length; epoch++) {
        ranks[epoch] = accesses.rank(sample, epoch);
        if (ranks[epoch] != Accesses.NOBODY) {
          times[firstWith(ranks, ranks[epoch])]++;
        }
      }
      boolean isFirst = true;
      for (int epoch = 0; epoch < ranks.length; epoch++) {
        if (times[epoch] > 0) {
          visitor.visit(sample, ranks[epoch], order.grade(times[epoch], isFirst), ranks);
          isFirst = false;
        }
      }
    }
  }

  private static int firstWith(int[] ranks, int rank) {
    int first = 0;
    while (ranks[first] != rank) {
      first++;
    }
    return first;
  }

  private void keep(long sample, int rank, int tier, int[] ranks) {
    for (int epoch = 0; epoch < ranks.length; epoch++) {
      if (ranks[epoch] == rank) {
        table.keep(sample, epoch, tier);
      }
    }
  }
}
