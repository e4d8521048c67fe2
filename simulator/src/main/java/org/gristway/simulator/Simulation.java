package org.gristway.simulator;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.plan.Caching;
import org.gristway.plan.Exchange;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.RunSteps;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.ClairvoyantPolicy;
import org.gristway.plan.policy.Policies;
import org.jspecify.annotations.Nullable;

/** Runs the policies of a scenario in virtual time. */
public final class Simulation {

  private final Scenario scenario;
  private final SampleLayout layout;
  private final Progress progress;

  /** With the dataset that the scenario describes. */
  public Simulation(Scenario scenario) {
    this(scenario, scenario.dataset().layout(scenario.seed()), Progress.NONE);
  }

  /** With a dataset in place of the one that the scenario describes, of about the same size. */
  public Simulation(Scenario scenario, SampleLayout layout, Progress progress) {
    this.scenario = scenario;
    this.layout = layout;
    this.progress = progress;
  }

  /** The outcome of each policy. */
  public List<Simulated> run() {
    return new Study(List.of(scenario), layout).run(progress).getFirst();
  }

  /** The outcome of one policy: that it cannot run is one too. */
  public Simulated run(Scenario.Tried tried) {
    try {
      Baseline baseline = Baseline.named(tried.name());
      return baseline != null
          ? new BaselineRun(scenario, layout, tried, baseline, progress).run()
          : runPlans(policy(tried), tried);
    } catch (Failure refused) {
      progress.advance(layout.sampleCount() * scenario.epochs());
      return Simulated.refused(tried.name(), String.valueOf(refused.getMessage()));
    }
  }

  private static ReadPolicy policy(Scenario.Tried tried) {
    return tried.byFrequency() ? ClairvoyantPolicy.byFrequency() : Policies.named(tried.name());
  }

  private Simulated runPlans(ReadPolicy policy, Scenario.Tried tried) {
    PlanInputs inputs = inputs(policy, tried);
    // The epoch in which samples are first kept is over before one that begins preloaded.
    long begin = tried.preload() ? 1 : 0;
    long end = begin + scenario.epochs();
    Map<Long, ReadPlan> plans = new HashMap<>(); // of the epochs that some rank is in
    RunSteps.Epochs epochs =
        epoch ->
            epoch < end
                ? plans.computeIfAbsent(
                    epoch, each -> new Warm(policy.plan(inputs, each), tried.preload()))
                : null;
    ReadPlan first = plan(epochs, begin);
    if (first.staysResident() && first.residentBytes() > tried.memory()) {
      throw Failure.wrongCall(
          "a node holds all of the dataset (%d bytes), and has memory for %d",
          first.residentBytes(), tried.memory());
    }
    boolean exchanges = inputs.settings().exchange().share() > 0;
    // What a rank pushes, and when, nobody can stand for.
    NodeSample sample =
        new NodeSample(exchanges ? scenario.withSimulated(scenario.nodes()) : scenario);
    Machines machines = new Machines(scenario, sample);
    Parcels parcels = new Parcels(inputs, machines, scenario.cost());
    long kept = tried.preload() ? first.bytesAtStart() / scenario.ranks() : 0;
    double start = preload(kept, machines);
    RankClock[] clocks = new RankClock[sample.ranks().length];
    for (int i = 0; i < clocks.length; i++) {
      int rank = sample.ranks()[i];
      RunSteps steps = new RunSteps(begin, 0, rank, epochs);
      clocks[i] =
          new RankClock(rank, start, kept, first, steps, machines, parcels, scenario.cost());
    }
    Training training = new Training(scenario, sample, tried.ahead());
    Recording recording = new Recording(scenario, sample);
    for (long epoch = begin; epoch < end; epoch++) {
      for (long step = 0; step < first.steps(); step++) {
        double room = Math.max(start, training.earliest());
        if (exchanges) {
          machines.beginStep(earliest(clocks));
          push(clocks, parcels);
          machines.beginPart(room);
        } else {
          machines.beginStep(room);
        }
        for (int rank = 0; rank < clocks.length; rank++) {
          training.took(rank, clocks[rank].build(training.room(rank)));
        }
        training.step();
        recording.add(training, machines, resident(clocks));
        progress.advance((long) scenario.ranks() * scenario.batchSize());
      }
      training.endEpoch();
      plans.remove(epoch);
    }
    return recording.outcome(tried.name(), training, machines, peak(clocks));
  }

  /** The time that the first rank has come to. */
  private static double earliest(RankClock[] clocks) {
    return Arrays.stream(clocks).mapToDouble(RankClock::now).min().orElseThrow();
  }

  /** Has all ranks push ahead, as they do when they come to a step. */
  private static void push(RankClock[] clocks, Parcels parcels) {
    for (RankClock clock : clocks) {
      clock.push();
    }
    parcels.carry();
  }

  /** Bytes that the first node holds. */
  private long resident(RankClock[] clocks) {
    long sum = 0;
    for (int rank = 0; rank < scenario.ranksPerNode(); rank++) {
      sum += clocks[rank].residentBytes();
    }
    return sum;
  }

  private long peak(RankClock[] clocks) {
    long peak = 0;
    for (int first = 0; first < clocks.length; first += scenario.ranksPerNode()) {
      long ofNode = 0;
      for (int i = 0; i < scenario.ranksPerNode(); i++) {
        ofNode += clocks[first + i].peakResident;
      }
      peak = Math.max(peak, ofNode);
    }
    return peak;
  }

  /** A plan whose first epoch finds its caches filled, or not. */
  private record Warm(ReadPlan plan, boolean filled) implements ReadPlan {

    @Override
    public PlanInputs inputs() {
      return plan.inputs();
    }

    @Override
    public long epoch() {
      return plan.epoch();
    }

    @Override
    public int laneFrames() {
      return plan.laneFrames();
    }

    @Override
    public int firstFrame(int rank) {
      return plan.firstFrame(rank);
    }

    @Override
    public int frames() {
      return plan.frames();
    }

    @Override
    public long frameBytes() {
      return plan.frameBytes();
    }

    @Override
    public long residentBytes() {
      return plan.residentBytes();
    }

    @Override
    public boolean staysResident() {
      return plan.staysResident();
    }

    @Override
    public long bytesAtStart() {
      return plan.bytesAtStart();
    }

    @Override
    public PlanSteps lane(int rank, boolean cold) {
      return plan.lane(rank, cold && !filled);
    }
  }

  /**
   * Fills the caches, by as many threads as reads go on at once, of which each prepares a sample
   * before it reads the next; when that is done.
   *
   * @param kept bytes of each rank
   */
  private double preload(long kept, Machines machines) {
    CostModel cost = scenario.cost();
    for (int rank = 0; rank < scenario.ranks(); rank++) {
      machines.countRead(rank, kept);
    }
    return kept * cost.secondsPerByteKept(meanBytes(), scenario.nodes(), scenario.ranksPerNode());
  }

  private long meanBytes() {
    return Math.round(scenario.dataset().mean());
  }

  private static ReadPlan plan(RunSteps.Epochs epochs, long epoch) {
    @Nullable ReadPlan plan = epochs.plan(epoch);
    if (plan == null) {
      throw new IllegalStateException("no plan for epoch " + epoch);
    }
    return plan;
  }

  private PlanInputs inputs(ReadPolicy policy, Scenario.Tried tried) {
    int perNode = scenario.ranksPerNode();
    CostModel cost = scenario.cost();
    Caching.Rates rates =
        new Caching.Rates(
            rate(
                cost.storage().by(scenario.nodes()).rate(meanBytes(), cost.storage().depth())
                    / perNode),
            rate(cost.network().rate() / perNode),
            rate(cost.memoryRate()),
            rate(cost.diskRate() / perNode));
    PlanSettings settings =
        new PlanSettings(
            policy.name(),
            scenario.batchSize(),
            tried.memory() / perNode,
            scenario.extentBytes(),
            Tail.SHORT,
            new Caching(scenario.disk() / perNode, scenario.epochs(), rates),
            policy.exchanges() ? scenario.exchange() : Exchange.NONE);
    World world = new World(scenario.ranks(), scenario.nodes(), 0);
    return PlanInputs.of(layout, scenario.seed(), world, settings);
  }

  private static long rate(double bytes) {
    return (long) Math.clamp(bytes, 1, 1e15);
  }
}
