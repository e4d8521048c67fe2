package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;

/**
 * Which samples each rank keeps until it is asked for them again, and in which tier. The accesses
 * of a rank are looked at in their order; at each, the sample is kept since the access before if
 * there was room all the while, in memory or else on the disk. So of two samples that want the same
 * room, the one that is asked for sooner has it: as many are served as by Belady's rule, which is
 * the most for samples of one size and one tier.
 *
 * <p>Room that is left goes to others: from its last access to the end of the stretch, a sample is
 * kept by the rank that got it in the first epoch.
 *
 * <p>Room is counted in slots of time, 1024 an epoch: a sample has that of the slots in which it
 * comes and goes, so a tier is never overfull, and unused by less than a thousandth of what a rank
 * is asked for in an epoch.
 */
final class NextUse {

  private static final int NOT_KEPT = SampleLane.NOT_KEPT;
  private static final int MOST_SLOTS = 1024; // of an epoch

  private final PlanInputs inputs;
  private final Accesses accesses;
  private final long memory;
  private final TierTable table;

  NextUse(PlanInputs inputs, Accesses accesses, long memory) {
    this.inputs = inputs;
    this.accesses = accesses;
    this.memory = memory;
    this.table = new TierTable(inputs.layout().sampleCount(), accesses);
    for (int rank = 0; rank < inputs.world().ranks(); rank++) {
      new OfRank(rank).decide();
    }
  }

  TierTable table() {
    return table;
  }

  /** What one rank keeps. Of each sample it notes its latest access, while it looks at them. */
  private final class OfRank {

    private final int rank;
    private final long perSlot; // accesses
    private final int slots; // of an epoch
    private final Occupancy[] tiers;
    private int epoch;
    private long inEpoch; // accesses before this one

    OfRank(int rank) {
      this.rank = rank;
      long inAnEpoch = Math.max(1, accesses.of(rank));
      this.perSlot = Math.ceilDiv(inAnEpoch, MOST_SLOTS);
      this.slots = (int) Math.ceilDiv(inAnEpoch, perSlot);
      int all = slots * accesses.epochs();
      this.tiers =
          new Occupancy[] {
            new Occupancy(all, memory), new Occupancy(all, inputs.settings().caching().diskBytes())
          };
    }

    void decide() {
      for (epoch = 0; epoch < accesses.epochs(); epoch++) {
        inEpoch = 0;
        accesses.forEach(rank, epoch, this::access);
      }
      accesses.forEach(rank, 0, this::keepForOthers);
      // Not the whole table, which would cost as much for each rank as for all of them.
      for (int each = 0; each < accesses.epochs(); each++) {
        accesses.forEach(rank, each, sample -> table.note(sample, 0));
      }
    }

    private void access(long sample) {
      int slot = epoch * slots + (int) (inEpoch++ / perSlot);
      int before = table.note(sample);
      if (before == 0 && inputs.cuts().isLarge(inputs.layout().location(sample))) {
        return; // no frame holds it for a tier to take
      }
      int tier = before == 0 ? NOT_KEPT : keep(sample, before, slot);
      table.note(sample, accessIn(epoch, tier));
    }

    private void keepForOthers(long sample) {
      int before = table.note(sample);
      int end = slots * accesses.epochs() - 1;
      if (before != 0 && epoch(before) < accesses.epochs() - 1) {
        keep(sample, before, end);
      }
    }

    /** Keeps a sample from one access to a slot, if there is room; where. */
    private int keep(long sample, int from, int to) {
      long length = inputs.layout().length(sample);
      long place = accesses.before(rank, sample, epoch(from));
      int begin = epoch(from) * slots + (int) (place / perSlot);
      for (int tier = 0; tier < tiers.length; tier++) {
        // Where it was kept before, it has the room of the slot already.
        int first = tier == tier(from) ? begin + 1 : begin;
        if (tiers[tier].take(first, to, length)) {
          table.keep(sample, epoch(from), tier);
          return tier;
        }
      }
      return NOT_KEPT;
    }
  }

  /** An access to a sample: in which epoch, and where it was kept until then. Never 0. */
  private static int accessIn(int epoch, int tier) {
    return (epoch + 1) << 2 | (tier - NOT_KEPT);
  }

  private static int epoch(int access) {
    return (access >> 2) - 1;
  }

  private static int tier(int access) {
    return (access & 3) + NOT_KEPT;
  }
}
