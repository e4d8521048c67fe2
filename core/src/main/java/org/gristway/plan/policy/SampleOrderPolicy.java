package org.gristway.plan.policy;

import java.util.ArrayDeque;
import org.gristway.chunk.Extent;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Requests;
import org.gristway.plan.PlanStep;
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
      return new Lane(this, rank);
    }
  }

  private static final class Lane extends BatchLane {

    private record Loaded(long sample, Extent extent, int frame) {}

    private final Plan plan;
    private final int rank;
    private final Shares shares;
    private final Requests requests;
    private final ExtentCuts cuts;
    private final FreeFrames freeFrames;
    private final ArrayDeque<Loaded> loaded = new ArrayDeque<>();
    private long loadStep;
    private int loadPosition;

    Lane(Plan plan, int rank) {
      super(new Places(plan.inputs(), plan.epoch(), rank), plan.epoch());
      this.plan = plan;
      this.rank = rank;
      this.shares = plan.inputs().shares();
      this.requests = plan.inputs().requests(plan.epoch());
      this.cuts = plan.inputs().cuts();
      this.freeFrames = new FreeFrames(plan.firstFrame(rank), plan.laneFrames());
    }

    @Override
    public boolean loadsLeft() {
      return loadStep < shares.steps() && loadPosition < shares.fresh(rank, loadStep);
    }

    @Override
    boolean load() {
      while (!freeFrames.isEmpty() && loaded.size() < plan.laneFrames() && loadsLeft()) {
        long sample = requests.at(shares.firstRequest(rank, loadStep) + loadPosition);
        if (++loadPosition == shares.fresh(rank, loadStep)) {
          loadStep++;
          loadPosition = 0;
        }
        Extent extent = plan.inputs().layout().location(sample);
        if (!cuts.isLarge(extent)) {
          int frame = freeFrames.take();
          loaded.add(new Loaded(sample, extent, frame));
          steps.add(new PlanStep.Load(extent, frame, false));
          return true;
        }
        loaded.add(new Loaded(sample, extent, PlanStep.IN_BATCH));
      }
      return false;
    }

    @Override
    void deliver() {
      Loaded next = loaded.remove();
      if (next.frame() == PlanStep.IN_BATCH) {
        steps.add(new PlanStep.Load(next.extent(), PlanStep.IN_BATCH, false));
        steps.add(places.deliver(next.sample(), PlanStep.IN_BATCH));
      } else {
        steps.add(places.deliver(next.sample(), next.frame()));
        steps.add(new PlanStep.Release(next.frame()));
        freeFrames.give(next.frame());
      }
    }
  }
}
