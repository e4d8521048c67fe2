package org.gristway.simulator;

import org.gristway.plan.Caching;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Source;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.StepSource;
import org.jspecify.annotations.Nullable;

/**
 * One rank in virtual time: it carries its steps out as the real executor does, each at the time
 * when what it waits for has come. Loads and fetches go on in the background; a delivery waits for
 * its frame, or for what another rank pushes; a batch waits for room, which is how a slow trainer
 * holds everything back.
 */
final class RankClock {

  private final int rank;
  private final int node;
  private final PlanInputs inputs;
  private final StepSource steps;
  private final Machines machines;
  private final Parcels parcels;
  private final CostModel cost;
  private final int atOnce;
  private final int firstFrame;
  private final double[] loaded; // by frame: when its bytes are there
  private final long[] held; // by frame: the bytes that it takes
  private final long frameBytes;
  private final boolean stays; // what is loaded, to the end of the run
  private final long firstEpoch;
  private @Nullable PlanStep pushedBack;
  private double straight; // when the bytes are there that the next delivery, or push, needs
  private double arrived; // when those have come that the next delivery is of
  private long batchStep; // of the batch at hand
  private double now;
  private double prepared;
  private long resident;
  private long kept; // bytes in memory

  long peakResident;

  /**
   * @param start when it may begin
   * @param kept bytes that are in its memory by then
   * @param first plan of the run
   */
  RankClock(
      int rank,
      double start,
      long kept,
      ReadPlan first,
      StepSource steps,
      Machines machines,
      Parcels parcels,
      CostModel cost) {
    this.rank = rank;
    this.kept = kept;
    this.peakResident = kept;
    this.inputs = first.inputs();
    this.node = inputs.world().nodeOf(rank);
    this.steps = steps;
    this.machines = machines;
    this.parcels = parcels;
    this.cost = cost;
    this.atOnce = first.laneFrames();
    this.firstFrame = first.firstFrame(rank);
    this.loaded = new double[first.laneFrames()];
    this.held = new long[first.laneFrames()];
    this.frameBytes = first.frameBytes();
    this.stays = first.staysResident();
    this.firstEpoch = first.epoch();
    this.now = start;
  }

  /** Bytes of memory that it holds now, with what others have pushed to it. */
  long residentBytes() {
    return resident + kept + parcels.waitingBytes(rank);
  }

  private void noteResident() {
    peakResident = Math.max(peakResident, residentBytes());
  }

  /** The time that it has come to. */
  double now() {
    return now;
  }

  /** What a batch is: when it can be trained on, and how many bytes it has. */
  record Built(double ready, long bytes) {}

  private @Nullable PlanStep next() {
    PlanStep step = pushedBack != null ? pushedBack : steps.next();
    pushedBack = null;
    return step;
  }

  /**
   * Pushes what others deliver at a later step, which it does when it comes to the next batch,
   * whether there is room for that or not.
   */
  void push() {
    while (true) {
      PlanStep step = next();
      switch (step) {
        case PlanStep.Send send -> send(send);
        case PlanStep.Load load -> load(load);
        case PlanStep.Release release -> release(release);
        case null, default -> {
          pushedBack = step;
          return;
        }
      }
    }
  }

  /**
   * Builds the next batch.
   *
   * @param room when there is room for it
   */
  Built build(double room) {
    noteResident();
    now = Math.max(now, room);
    long bytes = 0;
    boolean begun = false;
    while (true) {
      PlanStep step = next();
      switch (step) {
        case null -> {
          return built(bytes);
        }
        case PlanStep.Deliver deliver -> {
          if (begun && deliver.position() == 0) {
            pushedBack = deliver;
            return built(bytes);
          }
          begun = true;
          batchStep = deliver.step();
          bytes += deliver(deliver);
        }
        case PlanStep.Receive receive -> {
          if (begun && receive.position() == 0) {
            pushedBack = receive;
            return built(bytes);
          }
          arrived = parcels.arrived(rank, receive);
        }
        case PlanStep.Send send -> { // the batch is not held up by what comes behind it
          pushedBack = send;
          return built(bytes);
        }
        case PlanStep.Load load -> load(load);
        case PlanStep.Fetch fetch -> fetch(fetch);
        case PlanStep.Keep keep -> keep(keep);
        case PlanStep.Drop drop -> drop(drop);
        case PlanStep.Release release -> release(release);
        case PlanStep.EpochEnd _ -> {
          if (begun) {
            return built(bytes);
          }
        }
      }
    }
  }

  private Built built(long bytes) {
    parcels.done(now, rank, batchStep);
    prepared = Math.max(prepared, now) + bytes / cost.work().preparationRate();
    return new Built(prepared, bytes);
  }

  private void load(PlanStep.Load load) {
    long bytes = cost.storage().covering(load.extent());
    if (load.frame() == PlanStep.IN_BATCH) {
      straight = machines.read(now, rank, bytes, Machines.NOW);
    } else {
      hold(load.frame(), bytes, machines.read(now, rank, bytes, atOnce));
    }
  }

  private void fetch(PlanStep.Fetch fetch) {
    Source source = fetch.source();
    int from = source.peer() == Source.HERE ? node : source.peer();
    long bytes = inputs.layout().length(fetch.sample());
    boolean fromDisk = source.tier() == Caching.DISK;
    hold(fetch.frame(), bytes, machines.fetch(now, node, from, fromDisk, bytes));
  }

  /** An extent that is larger than a frame has one of its own size. */
  private void hold(int frame, long bytes, double done) {
    loaded[frame - firstFrame] = done;
    held[frame - firstFrame] = Math.max(frameBytes, bytes);
    resident += held[frame - firstFrame];
    noteResident();
  }

  private void release(PlanStep.Release release) {
    resident -= held[release.frame() - firstFrame];
  }

  /** A sample is copied into its parcel, and out of that when it is delivered. */
  private void send(PlanStep.Send send) {
    long bytes = inputs.layout().length(send.sample());
    double there = send.frame() == PlanStep.IN_BATCH ? straight : loaded[send.frame() - firstFrame];
    now = Math.max(now, Math.max(there, parcels.hasRoom(rank, send.rank(), send.step())));
    now = machines.work(now, rank, bytes / cost.memoryRate());
    parcels.add(now, rank, send, bytes);
  }

  private void keep(PlanStep.Keep keep) {
    long bytes = inputs.layout().length(keep.sample());
    if (keep.tier() == Caching.MEMORY) {
      kept += bytes;
      noteResident();
    } else {
      machines.write(now, node, bytes);
    }
  }

  private void drop(PlanStep.Drop drop) {
    if (drop.tier() == Caching.MEMORY) {
      kept -= drop.sample() == PlanStep.Drop.ALL ? kept : inputs.layout().length(drop.sample());
    }
  }

  private long deliver(PlanStep.Deliver deliver) {
    long bytes = inputs.layout().length(deliver.sample());
    if (deliver.frame() == PlanStep.RECEIVED) {
      now = Math.max(now, arrived);
    } else if (deliver.frame() != PlanStep.IN_BATCH) {
      now = Math.max(now, loaded[deliver.frame() - firstFrame]);
    } else if (!deliver.repeat()) {
      now = Math.max(now, straight);
    }
    // What stays is looked through when it is shown first, and from then on shown where it is.
    boolean shown = stays && steps.epoch() > firstEpoch;
    now = machines.work(now, rank, cost.sampleSeconds() + (shown ? 0 : bytes / cost.memoryRate()));
    return bytes;
  }
}
