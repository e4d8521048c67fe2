package org.gristway.simulator;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.gristway.plan.Exchange;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanStep;
import org.gristway.plan.World;
import org.jspecify.annotations.Nullable;

/**
 * What ranks push to each other: all that one pushes to another for one step is a parcel, which has
 * come when its last byte has. Ranks take turns a step at a time: first each pushes ahead, then
 * {@link #carry} has all of that cross the network, then each delivers. What a rank pushes depends
 * on what others were done with in the step before, and what it delivers on what they have pushed
 * by now, so it does not matter in which order ranks have their turn. For one thread.
 */
final class Parcels {

  private static final class Parcel {
    final int from;
    final int to;
    final long step;
    long bytes;
    double packed;
    double arrived;

    Parcel(int from, int to, long step) {
      this.from = from;
      this.to = to;
      this.step = step;
    }
  }

  /** Links pass what is ready first; of what is ready at once, what is needed first. */
  private static final Comparator<Parcel> IN_TURN =
      Comparator.<Parcel>comparingDouble(parcel -> parcel.packed)
          .thenComparingLong(parcel -> parcel.step)
          .thenComparingInt(parcel -> parcel.from);

  private final World world;
  private final Machines machines;
  private final double latency;
  private final int window;
  private final int room; // steps of each rank
  private final @Nullable Parcel[][] places; // by rank and step that there is room for, by position
  private final long[] waiting; // by rank and step: bytes
  private final double[] freed; // by rank and step: when the one before it was over
  private final double[] done; // by rank: when its last step was over
  private final double[] ended; // by rank: when its last epoch was over
  private final @Nullable Parcel[] packing; // by rank: what it pushes now
  private final List<Parcel> packed = new ArrayList<>(); // and not carried

  Parcels(PlanInputs inputs, Machines machines, CostModel cost) {
    this.world = inputs.world();
    this.machines = machines;
    this.latency = cost.network().latency();
    this.window = inputs.settings().exchange().window();
    this.room = Exchange.room(window);
    int ranks = world.ranks();
    boolean isUsed = inputs.settings().exchange().share() > 0;
    this.places = new Parcel[ranks * room][isUsed ? inputs.settings().batchSize() : 0];
    this.waiting = new long[ranks * room];
    this.freed = new double[ranks * room];
    this.done = new double[ranks];
    this.ended = new double[ranks];
    this.packing = new Parcel[ranks];
  }

  private int slot(int rank, long step) {
    return rank * room + (int) (step % room);
  }

  /**
   * When a rank may push to another for a step: it has been told that the other is in the epoch,
   * and done with the step whose room it takes.
   */
  double hasRoom(int from, int to, long step) {
    double since = step >= room ? freed[slot(to, step)] : step <= window ? done[to] : ended[to];
    return since + (isNear(from, to) ? 0 : latency);
  }

  private boolean isNear(int from, int to) {
    return world.nodeOf(from) == world.nodeOf(to);
  }

  /** Puts a sample into its parcel: those of a rank and step follow each other. */
  void add(double now, int from, PlanStep.Send send, long bytes) {
    Parcel parcel = packing[from];
    if (parcel == null || parcel.to != send.rank() || parcel.step != send.step()) {
      parcel = new Parcel(from, send.rank(), send.step());
      packing[from] = parcel;
      packed.add(parcel);
    }
    parcel.bytes += bytes;
    parcel.packed = now;
    int slot = slot(send.rank(), send.step());
    places[slot][send.position()] = parcel;
    waiting[slot] += bytes;
  }

  /** Carries what all ranks have pushed in their turn. */
  void carry() {
    packed.sort(IN_TURN);
    for (Parcel parcel : packed) {
      int from = world.nodeOf(parcel.from);
      int to = world.nodeOf(parcel.to);
      parcel.arrived = machines.push(parcel.packed, to, from, parcel.bytes);
      packing[parcel.from] = null;
    }
    packed.clear();
  }

  /** When the parcel has come that holds a sample. */
  double arrived(int rank, PlanStep.Receive receive) {
    Parcel parcel = places[slot(rank, receive.step())][receive.position()];
    if (parcel == null || parcel.step != receive.step() || parcel.from != receive.rank()) {
      throw new IllegalStateException("nobody has pushed " + receive);
    }
    return parcel.arrived;
  }

  /** Bytes that others have pushed to a rank for steps to come. */
  long waitingBytes(int rank) {
    long sum = 0;
    for (int slot = rank * room; slot < (rank + 1) * room; slot++) {
      sum += waiting[slot];
    }
    return sum;
  }

  /** Ends a step of a rank: there is room for another. */
  void done(double now, int rank, long step) {
    ended[rank] = step == 0 ? done[rank] : ended[rank];
    done[rank] = now;
    freed[slot(rank, step)] = now;
    waiting[slot(rank, step)] = 0;
  }
}
