package org.gristway.plan.policy;

import java.util.Arrays;
import org.gristway.plan.PlanInputs;

/**
 * Which samples each rank keeps, and in which tier: those that it will be asked for most often in a
 * stretch of epochs, in memory until that is full, then on its disk. A rank keeps a sample from the
 * first time that it is asked for it to the end of the stretch.
 */
final class Placement {

  private static final int NOT_KEPT = SampleLane.NOT_KEPT;
  private static final int TIERS = 2;

  private final PlanInputs inputs;
  private final Accesses accesses;
  private final TierTable table;

  /** Where the ranks stand while samples are dealt to tiers. */
  private final class Budgets {
    final int ranks = inputs.world().ranks();
    final long[] capacity; // by tier
    final long[] bytes; // by rank and by how often it is asked for a sample
    final int[][] lowest = new int[TIERS][ranks]; // asked for more often: surely in the tier
    final long[][] ofLowest = new long[TIERS][ranks]; // the room for those asked as often as that
    final long[][] used = new long[TIERS][ranks];

    Budgets(long... capacity) {
      this.capacity = capacity;
      this.bytes = new long[ranks * (accesses.epochs() + 1)];
    }

    void count(int rank, int times, long length) {
      bytes[rank * (accesses.epochs() + 1) + times] += length;
    }

    /** Fills the tiers from the most often asked for down. */
    void cut() {
      for (int rank = 0; rank < ranks; rank++) {
        int first = rank * (accesses.epochs() + 1);
        int times = accesses.epochs();
        long left = bytes[first + times]; // of those asked for so often
        for (int tier = 0; tier < TIERS; tier++) {
          long room = capacity[tier];
          while (times > 0 && left <= room) {
            room -= left;
            times--;
            left = times > 0 ? bytes[first + times] : 0;
          }
          lowest[tier][rank] = times;
          ofLowest[tier][rank] = room;
          left -= room;
        }
      }
    }

    /** The tier for a sample that a rank is asked for so often. */
    int tier(int rank, int times, long length) {
      for (int tier = 0; tier < TIERS; tier++) {
        boolean surely = times > lowest[tier][rank];
        boolean perhaps = times == lowest[tier][rank] && length <= ofLowest[tier][rank];
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
  Placement(PlanInputs inputs, Accesses accesses, long memory) {
    this.inputs = inputs;
    this.accesses = accesses;
    this.table = new TierTable(inputs, accesses);
    Budgets budgets = new Budgets(memory, inputs.settings().caching().diskBytes());
    forEachSample((sample, ranks, times) -> count(budgets, sample, ranks, times));
    budgets.cut();
    forEachSample((sample, ranks, times) -> place(budgets, sample, ranks, times));
  }

  TierTable table() {
    return table;
  }

  private interface Visitor {
    /**
     * @param ranks that get the sample, by epoch
     * @param times how often that rank does; 0 where an earlier epoch has the same rank
     */
    void visit(long sample, int[] ranks, int[] times);
  }

  private void forEachSample(Visitor visitor) {
    int[] ranks = new int[accesses.epochs()];
    int[] times = new int[accesses.epochs()];
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
      visitor.visit(sample, ranks, times);
    }
  }

  private static int firstWith(int[] ranks, int rank) {
    int first = 0;
    while (ranks[first] != rank) {
      first++;
    }
    return first;
  }

  private void count(Budgets budgets, long sample, int[] ranks, int[] times) {
    for (int epoch = 0; epoch < ranks.length; epoch++) {
      if (times[epoch] > 0) {
        budgets.count(ranks[epoch], times[epoch], inputs.layout().length(sample));
      }
    }
  }

  private void place(Budgets budgets, long sample, int[] ranks, int[] times) {
    for (int epoch = 0; epoch < ranks.length; epoch++) {
      if (times[epoch] == 0) {
        continue;
      }
      int tier = budgets.tier(ranks[epoch], times[epoch], inputs.layout().length(sample));
      for (int later = epoch; later < ranks.length; later++) {
        if (ranks[later] == ranks[epoch]) {
          table.keep(sample, later, tier);
        }
      }
    }
  }
}
