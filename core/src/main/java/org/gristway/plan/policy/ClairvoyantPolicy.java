package org.gristway.plan.policy;

import org.gristway.plan.Caching;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Requests;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Source;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Shares;
import org.gristway.plan.World;

/**
 * Delivers the requested order exactly. Each rank keeps the samples that it will be asked for most
 * often, in memory and on its disk, and gets every other from the fastest place that has it: a rank
 * that keeps it, or the store. After NoPFS: <i>Clairvoyant Prefetching for Distributed Machine
 * Learning I/O</i> (Dryden et al., 2021).
 *
 * <p>All ranks are asked for a sample equally often on average, but not each: over E epochs and N
 * ranks the numbers have a binomial distribution, and its upper end is what is worth keeping.
 *
 * <p>Changed against the paper: a sample is kept when it is first delivered where it is to be kept,
 * so what is where follows from the plan and nobody guesses; frequencies are counted, and
 * placements made, for 32 epochs at a time.
 */
public final class ClairvoyantPolicy implements ReadPolicy {

  public static final String NAME = "clairvoyant";

  private final Shared<Placement> placements = new Shared<>();

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int planVersion() {
    return 1;
  }

  @Override
  public boolean caches() {
    return true;
  }

  @Override
  public ReadPlan plan(PlanInputs inputs, long epoch) {
    Staging staging = Staging.of(inputs);
    int epochs = Math.min(Placement.MOST_EPOCHS, inputs.settings().caching().epochs());
    long first = epoch - epoch % epochs;
    Placement placement =
        placements.of(
            inputs, first, () -> new Placement(inputs, first, epochs, staging.cacheBytes()));
    return new Plan(inputs, epoch, staging, placement, (int) (epoch - first));
  }

  /**
   * @param inStretch the epoch, counted from the first that the placement is for
   */
  private record Plan(
      PlanInputs inputs, long epoch, Staging staging, Placement placement, int inStretch)
      implements StagedPlan {

    @Override
    public PlanSteps lane(int rank, boolean cold) {
      return new Lane(this, rank, cold);
    }
  }

  private static final class Lane extends SampleLane {

    private final Plan plan;
    private final int rank;
    private final boolean cold;
    private final World world;
    private final Caching.Rates rates;
    private final Shares shares;
    private final Requests requests;
    private final boolean isWhole;

    Lane(Plan plan, int rank, boolean cold) {
      super(plan, rank);
      this.plan = plan;
      this.rank = rank;
      this.cold = cold;
      this.world = plan.inputs().world();
      this.rates = plan.inputs().settings().caching().rates();
      this.shares = plan.inputs().shares();
      this.requests = plan.inputs().requests(plan.epoch());
      this.isWhole = plan.inputs().samples().isAll() && plan.inputs().segment() == 0;
      if (plan.inStretch() == 0 && plan.epoch() > 0 && !cold) {
        steps.add(new PlanStep.Drop(PlanStep.Drop.ALL, Caching.MEMORY));
        steps.add(new PlanStep.Drop(PlanStep.Drop.ALL, Caching.DISK));
      }
    }

    /** In the rest of an epoch, a sample may come to another rank than the placement knows of. */
    private boolean keeps(long sample) {
      return isWhole || plan.placement().rank(sample, plan.inStretch()) == rank;
    }

    @Override
    Wanted wanted(long step, int position) {
      long sample = requests.at(shares.firstRequest(rank, step) + position);
      long bits = plan.placement().bits(sample);
      int tier = keeps(sample) ? Placement.tier(bits, plan.inStretch()) : NOT_KEPT;
      if (cold || bits == 0) {
        return new Wanted(sample, null, tier);
      }
      Source best = null;
      long bestRate = rates.store();
      boolean kept = false;
      for (int earlier = 0; earlier < plan.inStretch(); earlier++) {
        int other = Placement.tier(bits, earlier);
        if (other == NOT_KEPT) {
          continue;
        }
        int keeper = plan.placement().rank(sample, earlier);
        kept |= keeper == rank;
        boolean here = world.nodeOf(keeper) == world.nodeOf(rank);
        long rate = rates.of(other, here);
        if (rate > bestRate || (rate == bestRate && here)) {
          bestRate = rate;
          best = new Source(here ? Source.HERE : world.nodeOf(keeper), other);
        }
      }
      return new Wanted(sample, best, kept ? NOT_KEPT : tier);
    }
  }
}
