package org.gristway.plan.policy;

import java.util.ArrayDeque;
import org.gristway.chunk.Extent;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.jspecify.annotations.Nullable;

/**
 * Reads the whole dataset into memory when the run begins, and delivers the requested order exactly
 * from there: the ceiling. It takes the memory that it needs, whatever the budget says.
 */
public final class UnboundedPolicy implements ReadPolicy {

  public static final String NAME = "unbounded";

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
    return new Plan(inputs, epoch);
  }

  /** Every extent has the frame of its own number, for all lanes of the node. */
  private record Plan(PlanInputs inputs, long epoch) implements ReadPlan {

    @Override
    public int frames() {
      return Math.toIntExact(inputs.cuts().count());
    }

    @Override
    public int firstFrame(int rank) {
      return 0;
    }

    @Override
    public int laneFrames() {
      return frames();
    }

    @Override
    public long residentBytes() {
      ExtentCuts cuts = inputs.cuts();
      long sum = 0;
      for (long extent = 0; extent < cuts.count(); extent++) {
        sum += Math.max(cuts.frameBytes(), ExtentCuts.coveringBytes(cuts.extent(extent)));
      }
      return sum;
    }

    @Override
    public PlanSteps lane(int rank, boolean cold) {
      return new Lane(this, rank, cold);
    }
  }

  private static final class Lane implements PlanSteps {

    private final Plan plan;
    private final ExtentCuts cuts;
    private final Places places;
    private final ArrayDeque<PlanStep> steps = new ArrayDeque<>();
    private final int stride;
    private long load;
    private boolean ended;

    Lane(Plan plan, int rank, boolean cold) {
      this.plan = plan;
      this.cuts = plan.inputs().cuts();
      this.places = new Places(plan.inputs(), plan.epoch(), rank);
      // A lane loads its share for all lanes of its node, before it delivers anything.
      int node = plan.inputs().world().nodeOf(rank);
      this.stride =
          plan.inputs().world().firstRank(node + 1) - plan.inputs().world().firstRank(node);
      this.load = cold ? plan.inputs().world().laneOf(rank) : cuts.count();
    }

    @Override
    public boolean loadsLeft() {
      return load < cuts.count();
    }

    @Override
    public @Nullable PlanStep next() {
      if (steps.isEmpty()) {
        decide();
      }
      return steps.poll();
    }

    private void decide() {
      if (loadsLeft()) {
        Extent extent = cuts.extent(load);
        steps.add(new PlanStep.Load(extent, (int) load, plan.inputs().segment() > 0));
        load += stride;
      } else if (!places.isDone()) {
        if (places.isFresh()) {
          long sample = places.request();
          steps.add(places.deliver(sample, (int) cuts.extentOf(sample)));
        } else {
          places.repeat(steps);
        }
      } else if (!ended) {
        ended = true;
        steps.add(new PlanStep.EpochEnd(plan.epoch()));
      }
    }
  }
}
