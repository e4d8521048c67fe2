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
 * its frame; a batch waits for room, which is how a slow trainer holds everything back.
 */
final class RankClock {

  private final int rank;
  private final int node;
  private final PlanInputs inputs;
  private final StepSource steps;
  private final Machines machines;
  private final CostModel cost;
  private final int atOnce;
  private final int firstFrame;
  private final double[] loaded; // by frame: when its bytes are there
  private final long frameBytes;
  private final boolean stays; // what is loaded, to the end of the run
  private final long firstEpoch;
  private @Nullable PlanStep pushedBack;
  private double straight; // when the bytes are there that the next delivery needs
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
      CostModel cost) {
    this.rank = rank;
    this.kept = kept;
    this.peakResident = kept;
    this.inputs = first.inputs();
    this.node = inputs.world().nodeOf(rank);
    this.steps = steps;
    this.machines = machines;
    this.cost = cost;
    this.atOnce = first.laneFrames();
    this.firstFrame = first.firstFrame(rank);
    this.loaded = new double[first.laneFrames()];
    this.frameBytes = first.frameBytes();
    this.stays = first.staysResident();
    this.firstEpoch = first.epoch();
    this.now = start;
  }

  /** Bytes of memory that it holds now. */
  long residentBytes() {
    return resident + kept;
  }

  /** What a batch is: when it can be trained on, and how many bytes it has. */
  record Built(double ready, long bytes) {}

  /**
   * Builds the next batch.
   *
   * @param room when there is room for it
   */
  Built build(double room) {
    now = Math.max(now, room);
    long bytes = 0;
    boolean begun = false;
    while (true) {
      PlanStep step = pushedBack != null ? pushedBack : steps.next();
      pushedBack = null;
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
          bytes += deliver(deliver);
        }
        case PlanStep.Load load -> load(load);
        case PlanStep.Fetch fetch -> fetch(fetch);
        case PlanStep.Keep keep -> keep(keep);
        case PlanStep.Drop drop -> drop(drop);
        case PlanStep.Release _ -> resident -= frameBytes;
        case PlanStep.EpochEnd _ -> {
          if (begun) {
            return built(bytes);
          }
        }
        default -> throw new IllegalStateException("not simulated: " + step);
      }
    }
  }

  private Built built(long bytes) {
    prepared = Math.max(prepared, now) + bytes / cost.work().preparationRate();
    return new Built(prepared, bytes);
  }

  private void load(PlanStep.Load load) {
    long bytes = cost.storage().covering(load.extent());
    if (load.frame() == PlanStep.IN_BATCH) {
      straight = machines.read(now, rank, bytes, Machines.NOW);
    } else {
      hold(load.frame(), machines.read(now, rank, bytes, atOnce));
    }
  }

  private void fetch(PlanStep.Fetch fetch) {
    Source source = fetch.source();
    int from = source.peer() == Source.HERE ? node : source.peer();
    long bytes = inputs.layout().length(fetch.sample());
    hold(fetch.frame(), machines.fetch(now, node, from, source.tier() == Caching.DISK, bytes));
  }

  private void hold(int frame, double done) {
    loaded[frame - firstFrame] = done;
    resident += frameBytes;
    peakResident = Math.max(peakResident, resident + kept);
  }

  private void keep(PlanStep.Keep keep) {
    long bytes = inputs.layout().length(keep.sample());
    if (keep.tier() == Caching.MEMORY) {
      kept += bytes;
      peakResident = Math.max(peakResident, resident + kept);
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
    if (deliver.frame() != PlanStep.IN_BATCH) {
      now = Math.max(now, loaded[deliver.frame() - firstFrame]);
    } else if (!deliver.repeat()) {
      now = Math.max(now, straight);
    }
    // What stays is looked through when it is shown first, and from then on shown where it is.
    boolean shown = stays && steps.epoch() > firstEpoch;
    now += cost.sampleSeconds() + (shown ? 0 : bytes / cost.memoryRate());
    return bytes;
  }
}
