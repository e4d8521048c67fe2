package org.gristway.simulator;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.plan.Caching;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.RunSteps;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;
import org.jspecify.annotations.Nullable;

/** Runs the policies of a scenario in virtual time. For one thread. */
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
    List<Simulated> outcomes = new ArrayList<>();
    for (Scenario.Tried tried : scenario.policies()) {
      outcomes.add(run(tried));
    }
    return outcomes;
  }

  /** The outcome of one policy: that it cannot run is one too. */
  public Simulated run(Scenario.Tried tried) {
    long samples = layout.sampleCount() * scenario.epochs();
    progress.begin("simulating " + tried.name(), Progress.Unit.SAMPLES, samples);
    try {
      Baseline baseline = Baseline.named(tried.name());
      return baseline != null
          ? new BaselineRun(scenario, layout, tried, baseline, progress).run()
          : runPlans(Policies.named(tried.name()), tried);
    } catch (Failure refused) {
      return Simulated.refused(tried.name(), String.valueOf(refused.getMessage()));
    }
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
    Machines machines = new Machines(scenario.cost(), scenario.nodes(), scenario.ranksPerNode());
    double start = tried.preload() ? preload(inputs, machines) : 0;
    RankClock[] clocks = new RankClock[scenario.ranks()];
    for (int rank = 0; rank < clocks.length; rank++) {
      RunSteps steps = new RunSteps(begin, 0, rank, epochs);
      clocks[rank] = new RankClock(rank, start, first, steps, machines, scenario.cost());
    }
    Training training = new Training(scenario, tried.ahead());
    for (long epoch = begin; epoch < end; epoch++) {
      for (long step = 0; step < first.steps(); step++) {
        machines.beginStep(Math.max(start, training.earliest()));
        for (int rank = 0; rank < clocks.length; rank++) {
          training.took(rank, clocks[rank].build(training.room(rank)));
        }
        training.step();
        progress.advance((long) scenario.ranks() * scenario.batchSize());
      }
      training.endEpoch();
      plans.remove(epoch);
    }
    return training.outcome(tried.name(), machines, peak(clocks));
  }

  private long peak(RankClock[] clocks) {
    long peak = 0;
    for (int node = 0; node < scenario.nodes(); node++) {
      long ofNode = 0;
      for (int i = 0; i < scenario.ranksPerNode(); i++) {
        ofNode += clocks[node * scenario.ranksPerNode() + i].peakResident;
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
    public PlanSteps lane(int rank, boolean cold) {
      return plan.lane(rank, cold && !filled);
    }
  }

  /**
   * Fills the caches, by as many threads as reads go on at once, of which each prepares a sample
   * before it reads the next; when that is done.
   */
  private double preload(PlanInputs inputs, Machines machines) {
    CostModel cost = scenario.cost();
    long kept = Math.min(inputs.settings().memory(), bytes() / scenario.ranks());
    machines.storageBytes += kept * scenario.ranks();
    return kept * cost.secondsPerByteKept(meanBytes(), scenario.nodes(), scenario.ranksPerNode());
  }

  private long meanBytes() {
    return Math.round(scenario.dataset().mean());
  }

  private long bytes() {
    long sum = 0;
    for (long sample = 0; sample < layout.sampleCount(); sample++) {
      sum += layout.length(sample);
    }
    return sum;
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
                cost.storage().rate(meanBytes(), cost.storage().depth(), scenario.nodes())
                    / perNode),
            rate(cost.network().rate()),
            rate(cost.memoryRate()),
            rate(cost.diskRate()));
    PlanSettings settings =
        new PlanSettings(
            policy.name(),
            scenario.batchSize(),
            tried.memory() / perNode,
            scenario.extentBytes(),
            Tail.SHORT,
            new Caching(scenario.disk() / perNode, scenario.epochs(), rates));
    World world = new World(scenario.ranks(), scenario.nodes(), 0);
    return PlanInputs.of(layout, scenario.seed(), world, settings);
  }

  private static long rate(double bytes) {
    return (long) Math.clamp(bytes, 1, 1e15);
  }
}
