package org.gristway.plan.policy;

import java.util.ArrayDeque;
import org.gristway.chunk.Extent;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanStep;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.Shares;
import org.jspecify.annotations.Nullable;

/**
 * A lane that gets each sample on its own, in the order of its deliveries, as many ahead as there
 * are frames. A policy decides which sample that is, where it comes from, and where it is kept.
 */
abstract class SampleLane extends BatchLane {

  /** In place of a tier. */
  static final int NOT_KEPT = -1;

  /**
   * The sample of a place.
   *
   * @param source where it is fetched from; null: the store
   * @param before the tier in which the lane keeps it until it is delivered, or {@link #NOT_KEPT}
   * @param after the tier in which the lane keeps it from then on, or {@link #NOT_KEPT}
   */
  record Wanted(long sample, PlanStep.@Nullable Source source, int before, int after) {}

  private record Coming(Wanted wanted, Extent extent, int frame) {}

  private final PlanInputs inputs;
  private final ExtentCuts cuts;
  private final Shares shares;
  private final int rank;
  private final int frames;
  private final FreeFrames freeFrames;
  private final ArrayDeque<Coming> coming = new ArrayDeque<>();
  private long nextStep;
  private int nextPosition;

  SampleLane(ReadPlan plan, int rank) {
    super(new Places(plan.inputs(), plan.epoch(), rank), plan.epoch());
    this.inputs = plan.inputs();
    this.cuts = inputs.cuts();
    this.shares = inputs.shares();
    this.rank = rank;
    this.frames = plan.laneFrames();
    this.freeFrames = new FreeFrames(plan.firstFrame(rank), frames);
  }

  /** What is delivered at a place; asked for once each, in their order. */
  abstract Wanted wanted(long step, int position);

  @Override
  public boolean loadsLeft() {
    return nextStep < shares.steps() && nextPosition < shares.fresh(rank, nextStep);
  }

  @Override
  boolean load() {
    while (!freeFrames.isEmpty() && coming.size() < frames && loadsLeft()) {
      Wanted wanted = wanted(nextStep, nextPosition);
      if (++nextPosition == shares.fresh(rank, nextStep)) {
        nextStep++;
        nextPosition = 0;
      }
      Extent extent = inputs.layout().location(wanted.sample());
      if (!cuts.isLarge(extent)) {
        int frame = freeFrames.take();
        coming.add(new Coming(wanted, extent, frame));
        steps.add(
            wanted.source() == null
                ? new PlanStep.Load(extent, frame, false)
                : new PlanStep.Fetch(wanted.sample(), wanted.source(), frame));
        return true;
      }
      coming.add(new Coming(wanted, extent, PlanStep.IN_BATCH));
    }
    return false;
  }

  @Override
  void deliver() {
    Coming next = coming.remove();
    long sample = next.wanted().sample();
    if (next.frame() == PlanStep.IN_BATCH) {
      steps.add(new PlanStep.Load(next.extent(), PlanStep.IN_BATCH, false));
      steps.add(places.deliver(sample, PlanStep.IN_BATCH));
      return;
    }
    steps.add(places.deliver(sample, next.frame()));
    move(sample, next.wanted().before(), next.wanted().after());
    steps.add(new PlanStep.Release(next.frame()));
    freeFrames.give(next.frame());
  }

  private void move(long sample, int from, int to) {
    if (from == to) {
      return;
    }
    if (from != NOT_KEPT) {
      steps.add(new PlanStep.Drop(sample, from));
    }
    if (to != NOT_KEPT) {
      steps.add(new PlanStep.Keep(sample, to));
    }
  }
}
