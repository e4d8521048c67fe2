package org.gristway.plan;

import org.gristway.plan.PlanStep.Deliver;
import org.jspecify.annotations.Nullable;

/**
 * A plan's deliveries in the order of training: all ranks' batches of a step, then those of the
 * next. Beside them it counts what the plan reads. For one thread; nothing is carried out.
 */
public final class PlannedOrder {

  private final ReadPlan plan;
  private final PlanSteps[] lanes;
  private long step;
  private long reads;
  private long bytes;
  private long fetches;
  private long resident;
  private long peak;

  /** An epoch that the run begins with. */
  public PlannedOrder(ReadPlan plan) {
    this(plan, true);
  }

  /**
   * @param cold true if nothing is left in memory of an epoch before
   */
  public PlannedOrder(ReadPlan plan, boolean cold) {
    int ranks = plan.inputs().world().ranks();
    this.plan = plan;
    this.lanes = new PlanSteps[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      lanes[rank] = plan.lane(rank, cold);
    }
  }

  /** The deliveries of the next step, by rank and position, or null at the end. */
  public Deliver @Nullable [][] next() {
    if (step == plan.steps()) {
      return null;
    }
    Deliver[][] batches = new Deliver[lanes.length][];
    for (int rank = 0; rank < lanes.length; rank++) {
      batches[rank] = batch(rank);
    }
    step++;
    return batches;
  }

  private Deliver[] batch(int rank) {
    Deliver[] places = new Deliver[plan.inputs().shares().places(rank, step)];
    for (int i = 0; i < places.length; ) {
      PlanStep next = lanes[rank].next();
      switch (next) {
        case Deliver deliver -> places[i++] = deliver;
        case null -> throw new IllegalStateException("the plan ends before its last step");
        default -> count(next);
      }
    }
    return places;
  }

  private void count(PlanStep next) {
    if (next instanceof PlanStep.Load load) {
      reads++;
      bytes += ExtentCuts.coveringBytes(load.extent());
      if (load.frame() != PlanStep.IN_BATCH) {
        resident += plan.frameBytes();
        peak = Math.max(peak, resident);
      }
    } else if (next instanceof PlanStep.Fetch) {
      fetches++;
      resident += plan.frameBytes();
      peak = Math.max(peak, resident);
    } else if (next instanceof PlanStep.Release) {
      resident -= plan.frameBytes();
    }
  }

  /** Reads from the store up to here. */
  public long reads() {
    return reads;
  }

  /** Samples that came from the job's caches up to here. */
  public long fetches() {
    return fetches;
  }

  /** The bytes of those reads. */
  public long bytes() {
    return bytes;
  }

  /** The most bytes of frames that the ranks of the job have held at once. */
  public long peakResidentBytes() {
    return peak;
  }
}
