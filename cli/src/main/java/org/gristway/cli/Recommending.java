package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.simulator.CostModel.Work;
import org.gristway.simulator.Values;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** What {@code plan --recommend} does, and its options. */
final class Recommending {

  @Option(
      names = "--recommend",
      description =
          "Recommend settings: those that keep a trainer from waiting with the least memory, --memory"
              + " at most. They are tried in virtual time on storage as it is measured here, which"
              + " takes half a minute, or as --probe says.")
  private boolean isWanted;

  @Option(
      names = "--step-time",
      paramLabel = "TIME",
      description = "For --recommend: what training on one batch takes, such as 25ms or 0.4s.")
  private @Nullable String stepTime;

  @Option(
      names = "--probe",
      paramLabel = "FILE",
      description = "For --recommend: what 'gristway probe DIR --json' has printed.")
  private @Nullable Path probe;

  boolean isWanted() {
    return isWanted;
  }

  /**
   * @param policy to recommend settings for, or empty for the best of all
   */
  void check(Optional<String> policy, ReadArguments arguments, int nodes) {
    if (!isWanted) {
      if (stepTime != null || probe != null) {
        throw arguments.wrong("--step-time and --probe are for --recommend");
      }
      return;
    }
    if (stepTime == null) {
      throw arguments.wrong("--recommend needs --step-time, what training on one batch takes");
    }
    if (policy.isPresent() && !Recommender.POLICIES.contains(policy.get())) {
      throw Failure.wrongCall("--recommend tries %s, not '%s'", Recommender.POLICIES, policy.get());
    }
    if (arguments.tail() != Tail.SHORT) {
      throw arguments.wrong("--tail is about a plan, not for --recommend");
    }
    if (arguments.ranks(nodes) % nodes != 0) {
      throw arguments.wrong("--recommend needs as many ranks on each node as on the others");
    }
  }

  void run(
      Path dataset, Optional<String> policy, ReadArguments arguments, int nodes, Console console)
      throws IOException {
    double step = Values.seconds("--step-time", Objects.requireNonNull(stepTime));
    Work work = new Work(Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY, step, true);
    try (Dataset opened = Dataset.open(dataset)) {
      ProbeResult probed = probe == null ? measured(dataset, console) : ProbeFile.read(probe);
      Snapshot snapshot = opened.snapshot();
      double meanBytes = (double) snapshot.dataBytes() / Math.max(1, snapshot.sampleCount());
      Recommender.Asked asked =
          new Recommender.Asked(
              policy,
              SampleLayout.of(snapshot),
              snapshot.dataBytes(),
              arguments.batchSize(),
              new World(arguments.ranks(nodes), nodes, 0),
              arguments.memory(snapshot),
              extents(arguments.extent(), probed, meanBytes),
              arguments.seed(),
              ProbeCosts.of(probed, work));
      Recommendation recommendation = recommendation(asked, console);
      console.endProgress();
      RecommendationOutput output = new RecommendationOutput(dataset.toString(), recommendation);
      if (arguments.asJson()) {
        output.writeJson(console.out());
      } else {
        output.print(console);
      }
    }
  }

  private static ProbeResult measured(Path dataset, Console console) {
    try (ProbeFolder folder = ProbeFolder.in(dataset)) {
      return new Probe(folder, console.progress()).run();
    }
  }

  /** What suits the memory, and what gets all that the storage gives, if that holds samples. */
  private static List<Long> extents(long asked, ProbeResult probed, double meanBytes) {
    if (asked != ExtentSize.AUTO) {
      return List.of(asked);
    }
    return probed.saturatingBytes() < 2 * meanBytes
        ? List.of(ExtentSize.AUTO)
        : List.of(ExtentSize.AUTO, probed.saturatingBytes());
  }

  private static Recommendation recommendation(Recommender.Asked asked, Console console) {
    Recommender recommender = new Recommender(asked, console.progress());
    List<Recommendation.Advised> advised = new ArrayList<>();
    for (Candidate each : recommender.recommend()) {
      ReadPlan plan = recommender.plan(each);
      Progress progress = console.progress();
      long samples = asked.layout().sampleCount();
      progress.begin("planning " + each.policy(), Progress.Unit.SAMPLES, samples);
      advised.add(Recommendation.Advised.of(each, plan, progress));
    }
    if (advised.isEmpty()) {
      throw Failure.wrongCall(
          "the memory is too small for any policy: give it more, or make the extents smaller");
    }
    return new Recommendation(
        asked,
        recommender.samplesTried(),
        advised.getFirst(),
        advised.size() > 1 ? advised.getLast() : null);
  }
}
