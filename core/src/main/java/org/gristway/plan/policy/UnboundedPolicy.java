package org.gristway.plan.policy;

import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;

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
    public boolean staysResident() {
      return true;
    }

    @Override
    public long bytesAtStart() {
      return inputs.world().nodes() * residentBytes();
    }

    @Override
    public PlanSteps lane(int rank, boolean cold) {
      return new Lane(this, rank, cold);
    }
  }

  private static final class Lane extends BatchLane {

    private final Plan plan;
    private final ExtentCuts cuts;
    private final int stride;
    private long load;

    Lane(Plan plan, int rank, boolean cold) {
      super(new Places(plan.inputs(), plan.epoch(), rank), plan.epoch());
      this.plan = plan;
      this.cuts = plan.inputs().cuts();
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
    boolean load() {
      if (!loadsLeft()) {
        return false;
      }
      boolean again = plan.inputs().segment() > 0;
      steps.add(new PlanStep.Load(cuts.extent(load), (int) load, again));
      load += stride;
      return true;
    }

    @Override
    void deliver() {
      long sample = places.request();
      steps.add(places.deliver(sample, (int) cuts.extentOf(sample)));
    }
  }
}
