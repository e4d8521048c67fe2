package org.gristway.plan.policy;

import org.gristway.plan.Caching;
import org.gristway.plan.PlanInputs.Requests;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Source;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.Shares;
import org.gristway.plan.World;

/**
 * A lane that delivers the requested order, keeps samples as a table says, and gets every sample
 * from the fastest place that has it: a rank that keeps it, or the store.
 *
 * <p>In an epoch one rank alone gets a sample. What another keeps of it, it has had since an epoch
 * before and has until one after: so it is there whenever in the epoch it is fetched, however far
 * the other rank has come.
 */
final class TierLane extends SampleLane {

  private final TierTable table;
  private final int inStretch;
  private final int rank;
  private final boolean isWhole;
  private final boolean isEmpty;
  private final World world;
  private final Caching.Rates rates;
  private final Shares shares;
  private final Requests requests;
  private final int[] seen = new int[TierTable.MOST_EPOCHS]; // ranks, the latest access first

  /**
   * @param inStretch the epoch, counted from the first that the table is for
   * @param cold true if nothing is kept yet: the run begins here
   */
  TierLane(ReadPlan plan, TierTable table, int inStretch, int rank, boolean cold) {
    super(plan, rank);
    this.table = table;
    this.inStretch = inStretch;
    this.rank = rank;
    this.isWhole = plan.inputs().samples().isAll() && plan.inputs().segment() == 0;
    // Whoever does the rest of an epoch begins with it.
    this.isEmpty = cold || !isWhole;
    this.world = plan.inputs().world();
    this.rates = plan.inputs().settings().caching().rates();
    this.shares = plan.inputs().shares();
    this.requests = plan.inputs().requests(plan.epoch());
    if (inStretch == 0 && plan.epoch() > 0 && !cold) {
      steps.add(new PlanStep.Drop(PlanStep.Drop.ALL, Caching.MEMORY));
      steps.add(new PlanStep.Drop(PlanStep.Drop.ALL, Caching.DISK));
    }
  }

  @Override
  Wanted wanted(long step, int position) {
    long sample = requests.at(shares.firstRequest(rank, step) + position);
    long digits = table.digits(sample);
    int after = isKeeper(sample) ? TierTable.tier(digits, inStretch) : NOT_KEPT;
    if (isEmpty) {
      return new Wanted(sample, null, NOT_KEPT, after);
    }
    int before = NOT_KEPT;
    Source best = null;
    long bestRate = rates.store();
    int count = 0;
    for (int epoch = inStretch - 1; TierTable.before(digits, epoch + 1) != 0; epoch--) {
      int keeper = table.rank(sample, epoch);
      if (keeper == Accesses.NOBODY || wasSeen(keeper, count)) {
        continue; // what it kept then, it has kept anew or dropped since
      }
      seen[count++] = keeper;
      int tier = TierTable.tier(digits, epoch);
      if (tier == NOT_KEPT) {
        continue;
      }
      if (keeper == rank) {
        before = tier;
      }
      boolean here = world.nodeOf(keeper) == world.nodeOf(rank);
      long rate = rates.of(tier, here);
      // Of ranks of other nodes, the one that has had it longest: it has surely come so far.
      boolean isLonger = best != null && best.peer() != Source.HERE;
      if (rate > bestRate || (rate == bestRate && (here || isLonger))) {
        bestRate = rate;
        best = new Source(here ? Source.HERE : world.nodeOf(keeper), tier);
      }
    }
    return new Wanted(sample, best, before, after);
  }

  /** In the rest of an epoch, a sample may come to another rank than the table knows of. */
  private boolean isKeeper(long sample) {
    return isWhole || table.rank(sample, inStretch) == rank;
  }

  private boolean wasSeen(int keeper, int count) {
    for (int i = 0; i < count; i++) {
      if (seen[i] == keeper) {
        return true;
      }
    }
    return false;
  }
}
