package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Requests;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Shares;

/**
 * Delivers the requested order exactly, with one small read a sample: the floor, what a plain
 * loader does, though with its reads ahead of need.
 */
public final class SampleOrderPolicy implements ReadPolicy {

  public static final String NAME = "sample-order";

  /** More reads ahead than any storage takes at once. */
  private static final int MOST_FRAMES = 1024;

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int planVersion() {
    return 1;
  }

  @Override
  public ReadPlan plan(PlanInputs inputs, long epoch) {
    ExtentPlan.refuseTooFewFrames(inputs, 1);
    return new Plan(inputs, epoch);
  }

  private record Plan(PlanInputs inputs, long epoch) implements ReadPlan {

    @Override
    public int laneFrames() {
      long useful = Math.min(MOST_FRAMES, inputs.layout().sampleCount() + 1);
      return (int) Math.min(useful, inputs.settings().frames());
    }

    @Override
    public PlanSteps lane(int rank, boolean cold) {
      Requests requests = inputs.requests(epoch);
      Shares shares = inputs.shares();
      return new SampleLane(this, rank) {
        @Override
        Wanted wanted(long step, int position) {
          long sample = requests.at(shares.firstRequest(rank, step) + position);
          return new Wanted(sample, null, NOT_KEPT, NOT_KEPT);
        }
      };
    }
  }
}
