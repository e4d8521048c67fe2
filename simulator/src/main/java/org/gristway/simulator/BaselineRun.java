package org.gristway.simulator;

import java.util.Arrays;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.plan.Draws;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Requests;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Shares;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.SampleOrderPolicy;

/** A baseline of a scenario, in virtual time. For one thread. */
final class BaselineRun {

  private static final long PARTS = 1L << 40;

  private final Scenario scenario;
  private final SampleLayout layout;
  private final Scenario.Tried tried;
  private final Baseline baseline;
  private final Progress progress;
  private final CostModel cost;
  private final CostModel.Shared storage; // by all nodes
  private final double secondsPerByteKept;
  private final double secondsPerByteOneByOne;
  private final NodeSample sample;
  private final Machines machines;
  private final Training training;
  private final Pipe[] threads; // by rank: those that fetch what is kept
  private final double[] prepared;
  private final Recording recording;
  private final long datasetBytes;
  private final double cachedPart; // of the dataset, in all memories
  private double begun; // when training does

  BaselineRun(
      Scenario scenario,
      SampleLayout layout,
      Scenario.Tried tried,
      Baseline baseline,
      Progress progress) {
    this.progress = progress;
    this.scenario = scenario;
    this.layout = layout;
    this.tried = tried;
    this.baseline = baseline;
    this.cost = scenario.cost();
    this.storage = cost.storage().by(scenario.nodes());
    long mean = Math.round(scenario.dataset().mean());
    int perNode = scenario.ranksPerNode();
    this.secondsPerByteKept = cost.secondsPerByteKept(mean, scenario.nodes(), perNode);
    this.secondsPerByteOneByOne = cost.secondsPerByteOneByOne(mean, scenario.nodes(), perNode);
    this.sample = new NodeSample(scenario);
    this.machines = new Machines(scenario, sample);
    this.training = new Training(scenario, sample, tried.ahead());
    this.threads = new Pipe[sample.ranks().length];
    Arrays.setAll(threads, _ -> new Pipe());
    this.prepared = new double[sample.ranks().length];
    this.recording = new Recording(scenario, sample);
    this.datasetBytes = layout.bytes();
    this.cachedPart = Math.min(1, (double) tried.memory() * scenario.nodes() / datasetBytes);
  }

  Simulated run() {
    if (baseline.needsAll && cachedPart < 1) {
      throw Failure.wrongCall(
          "the dataset (%d bytes) does not fit the memory of all nodes (%d bytes)",
          datasetBytes, tried.memory() * scenario.nodes());
    }
    preload();
    PlanSettings settings =
        new PlanSettings(
            SampleOrderPolicy.NAME,
            scenario.batchSize(),
            scenario.extentBytes(),
            scenario.extentBytes(),
            Tail.SHORT);
    World world = new World(scenario.ranks(), scenario.nodes(), 0);
    PlanInputs inputs = PlanInputs.of(layout, scenario.seed(), world, settings);
    Shares shares = inputs.shares();
    for (long epoch = 0; epoch < scenario.epochs(); epoch++) {
      Requests requests = inputs.requests(epoch);
      for (long step = 0; step < shares.steps(); step++) {
        machines.beginStep(Math.max(begun, training.earliest()));
        for (int i = 0; i < threads.length; i++) {
          training.took(i, build(i, step, epoch, shares, requests));
        }
        training.step();
        recording.add(training, machines, residentBytes());
        progress.advance((long) scenario.ranks() * scenario.batchSize());
      }
      training.endEpoch();
    }
    return recording.outcome(tried.name(), training, machines, residentBytes());
  }

  private long residentBytes() {
    boolean keeps = baseline.before != Baseline.Before.NOTHING || baseline.needsAll;
    long all = keeps ? (long) (cachedPart * datasetBytes / scenario.nodes()) : 0;
    boolean fillsOnTheWay = baseline.then == Baseline.Then.FROM_STORE_ONCE;
    return fillsOnTheWay ? Math.min(all, machines.storageBytes()[sample.nodes()[0]]) : all;
  }

  /** Fills the memories, by as many threads as reads go on at once, or by one of them. */
  private void preload() {
    if (baseline.before == Baseline.Before.NOTHING) {
      return;
    }
    double bytes = cachedPart * datasetBytes / scenario.ranks();
    boolean oneByOne = baseline.before == Baseline.Before.FILL_MEMORY_ONE_BY_ONE;
    for (int rank = 0; rank < scenario.ranks(); rank++) {
      machines.countRead(rank, (long) bytes);
    }
    begun = bytes * (oneByOne ? secondsPerByteOneByOne : secondsPerByteKept);
  }

  /**
   * @param index of a rank in the sample
   */
  private RankClock.Built build(
      int index, long step, long epoch, Shares shares, Requests requests) {
    int rank = sample.ranks()[index];
    long first = shares.firstRequest(rank, step);
    double issued = Math.max(begun, training.room(index));
    double done = issued;
    double demanded = 0;
    long bytes = 0;
    for (int i = 0; i < shares.fresh(rank, step); i++) {
      long sample = requests.at(first + i);
      long length = layout.length(sample);
      bytes += length;
      switch (baseline.then) {
        case AT_HAND -> {}
        case FROM_STORE ->
            done = Math.max(done, machines.read(issued, rank, length, cost.storage().depth()));
        case FROM_STORE_ONCE -> {
          if (epoch == 0) {
            machines.countRead(rank, length);
            done = threads[index].pass(issued, length * secondsPerByteKept);
          }
        }
        case REST_ON_DEMAND -> {
          if (!isCached(sample)) {
            machines.countRead(rank, length);
            demanded += onDemand(length);
            demanded += length / cost.work().preparationRate();
          }
        }
      }
    }
    if (demanded > 0) {
      done = Math.max(begun, training.end(index)) + demanded;
    }
    prepared[index] = Math.max(prepared[index], done) + prepare(epoch, bytes);
    return new RankClock.Built(prepared[index], bytes);
  }

  /** What a read takes that each rank waits for, and has no other: all ranks read like that. */
  private double onDemand(long length) {
    int perNode = scenario.ranksPerNode();
    return Math.max(storage.alone(length), perNode * length / storage.rate(length, perNode));
  }

  /** Preparing goes on beside all else, unless it has been counted with the fetching. */
  private double prepare(long epoch, long bytes) {
    boolean counted =
        baseline == Baseline.PERFECT
            || baseline.then == Baseline.Then.REST_ON_DEMAND
            || (baseline.then == Baseline.Then.FROM_STORE_ONCE && epoch == 0);
    return counted ? 0 : bytes / cost.work().preparationRate();
  }

  private boolean isCached(long sample) {
    // A key of its own: the first number of this sample's decides how large it is.
    return new Draws(Draws.key(scenario.seed(), sample, 1)).below(PARTS) < cachedPart * PARTS;
  }
}
