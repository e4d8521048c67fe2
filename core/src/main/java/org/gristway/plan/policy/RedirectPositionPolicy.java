package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;

/**
 * Answers a request with whichever sample lies in the slot of the one that is asked for. Extents
 * form groups, a group has a slot for each position in an extent, and the samples at that position
 * of all its extents share the slot, one at a time. The rule of the first code that Redox's authors
 * published (MemHub: Li, 2024).
 *
 * <p>A request that finds its slot empty opens an extent: the one of which the largest part of what
 * is still owed can be brought in now. Only samples whose slots are empty come along, so an extent
 * is opened again and again, more often the longer it is: its samples are read one by one, each
 * once.
 *
 * <p>Changed against the code: slots are counted in bytes of memory, a rank asks only for samples
 * of extents that are dealt to it, groups are made anew in every epoch, ties are drawn from the
 * seed, and what will be opened is decided, and loaded, ahead of need.
 */
public final class RedirectPositionPolicy implements ReadPolicy {

  public static final String NAME = "redirect-position";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int planVersion() {
    return 2;
  }

  @Override
  public ReadPlan plan(PlanInputs inputs, long epoch) {
    return new Plan(inputs, epoch, SampleFrames.bytes(inputs), new FreshDeal(inputs, epoch));
  }

  private record Plan(PlanInputs inputs, long epoch, long frameBytes, Deal deal)
      implements ReadPlan {

    @Override
    public int laneFrames() {
      long useful =
          Math.min(
              inputs.layout().sampleCount() + 1, Integer.MAX_VALUE / inputs.world().mostRanks());
      return (int) Math.min(useful, inputs.settings().memory() / frameBytes);
    }

    @Override
    public PlanSteps lane(int rank, boolean cold) {
      return new PositionLane(inputs, epoch, deal, rank, firstFrame(rank), laneFrames());
    }
  }
}
