package org.gristway.plan;

import org.gristway.plan.PlanStep.Deliver;
import org.jspecify.annotations.Nullable;

/**
 * A plan's deliveries in the order of training: all ranks' batches of a step, then those of the
 * next. Beside them it counts what the plan reads, and what it has in memory: frames in use, and
 * samples that are kept there. For one thread; nothing is carried out.
 */
public final class PlannedOrder {

  private final ReadPlan plan;
  private final PlanSteps[] lanes;
  private long step;
  private long reads;
  private long bytes;
  private long moved;
  private final long[] kept; // bytes that each rank keeps in memory since the epoch began
  private long resident;
  private long stepPeak;
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
    this.kept = new long[ranks];
    this.resident = cold ? 0 : plan.bytesAtStart();
    this.peak = resident;
    for (int rank = 0; rank < ranks; rank++) {
      lanes[rank] = plan.lane(rank, cold);
    }
  }

  /** The deliveries of the next step, by rank and position, or null at the end. */
  public Deliver @Nullable [][] next() {
    if (step == plan.steps()) {
      end();
      return null;
    }
    stepPeak = resident;
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
        default -> count(rank, next);
      }
    }
    return places;
  }

  /** What comes behind the last delivery: it may still be kept. */
  private void end() {
    for (int rank = 0; rank < lanes.length; rank++) {
      for (PlanStep next = lanes[rank].next(); next != null; next = lanes[rank].next()) {
        count(rank, next);
      }
    }
  }

  private void count(int rank, PlanStep next) {
    switch (next) {
      case PlanStep.Load load -> {
        reads++;
        bytes += ExtentCuts.coveringBytes(load.extent());
        if (load.frame() != PlanStep.IN_BATCH) {
          // An extent that is larger than a frame has one of its own size.
          hold(Math.max(plan.frameBytes(), ExtentCuts.coveringBytes(load.extent())));
        }
      }
      case PlanStep.Fetch fetch -> {
        move(fetch.sample(), fetch.source().peer() != PlanStep.Source.HERE);
        hold(plan.frameBytes());
      }
      case PlanStep.Send send -> {
        World world = plan.inputs().world();
        move(send.sample(), world.nodeOf(send.rank()) != world.nodeOf(rank));
      }
      case PlanStep.Release _ -> resident -= plan.frameBytes();
      case PlanStep.Keep keep when keep.tier() == Caching.MEMORY -> {
        long length = plan.inputs().layout().length(keep.sample());
        kept[rank] += length;
        hold(length);
      }
      case PlanStep.Drop drop when drop.tier() == Caching.MEMORY -> {
        long length =
            drop.sample() == PlanStep.Drop.ALL
                ? kept[rank]
                : plan.inputs().layout().length(drop.sample());
        kept[rank] -= length;
        resident -= length;
      }
      default -> {}
    }
  }

  private void move(long sample, boolean toAnotherNode) {
    moved += toAnotherNode ? plan.inputs().layout().length(sample) : 0;
  }

  private void hold(long more) {
    resident += more;
    stepPeak = Math.max(stepPeak, resident);
    peak = Math.max(peak, resident);
  }

  /** Reads from the store up to here. */
  public long reads() {
    return reads;
  }

  /** The bytes of those reads. */
  public long bytes() {
    return bytes;
  }

  /** Bytes that went from one node to another up to here. */
  public long movedBytes() {
    return moved;
  }

  /** The most bytes that the ranks of the job have held at once. */
  public long peakResidentBytes() {
    return peak;
  }

  /** The most bytes that they have held while the batches of the last step were made. */
  public long stepResidentBytes() {
    return stepPeak;
  }
}
