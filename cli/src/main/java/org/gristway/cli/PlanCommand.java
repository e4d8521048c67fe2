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
import org.gristway.plan.Caching;
import org.gristway.plan.LabelCounts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;
import org.gristway.simulator.CostModel.Work;
import org.gristway.simulator.Values;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Says what reading would do. */
@Command(
    name = "plan",
    sortOptions = false,
    description = {
      "Says what reading a dataset would do, without reading it: memory, reads and how well it is"
          + " shuffled.",
      "'gristway read' with the same options delivers exactly the order that is planned here.",
      "Beside the policies stand the floor, the order as packed, and the ceiling, a full shuffle.",
      "With --recommend it says which policy, memory and extent size keep a trainer from waiting on"
          + " this machine, and why."
    },
    footer = {
      "",
      "Example: gristway plan flowers.gw --memory 10%%",
      "         gristway plan flowers.gw --recommend --step-time 25ms --memory 8GiB"
    })
final class PlanCommand implements CliCommand {

  private static final String ALL = "all";

  private final Console console;

  @Mixin private DatasetArgument dataset = new DatasetArgument();

  @Option(
      names = "--policy",
      paramLabel = "NAME",
      description =
          "What to look at: sample-order, chunk-shuffle, redirect, redirect-position, clairvoyant,"
              + " clairvoyant-next-use, locality, unbounded, or all, which is the default.")
  private String policy = ALL;

  @Mixin private ReadArguments arguments = new ReadArguments();

  @Option(
      names = "--nodes",
      paramLabel = "COUNT",
      description =
          "Machines that the ranks are spread over, each with its own --memory; one rank on each"
              + " unless --ranks says otherwise (default: 1).")
  private int nodes = 1;

  @Option(
      names = "--epoch",
      paramLabel = "NUMBER",
      description =
          "Which epoch to plan (default: 0). It is compared with the one after it, which is planned"
              + " too.")
  private long epoch;

  @Option(
      names = "--html",
      paramLabel = "FILE",
      description =
          "Write a page with pictures too: which sample comes when, mates and memory over the"
              + " epoch. It replaces a file of that name.")
  private @Nullable Path html;

  @Option(
      names = "--recommend",
      description =
          "Recommend settings: those that keep a trainer from waiting with the least memory, --memory"
              + " at most. They are tried in virtual time on storage as it is measured here, which"
              + " takes half a minute, or as --probe says.")
  private boolean recommends;

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

  /** As many epochs as a policy that counts them looks ahead, and no disk. */
  private static final Caching OF_A_LONG_RUN = new Caching(0, 32, Caching.Rates.USUAL);

  PlanCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    check();
    if (recommends) {
      recommend();
      return DONE;
    }
    PageFile page = html == null ? null : PageFile.at(html);
    List<ReadPolicy> policies =
        policy.equals(ALL) ? Policies.all() : List.of(Policies.named(policy));
    try (Dataset opened = Dataset.open(dataset.path())) {
      DatasetOutlook outlook = outlook(opened.snapshot(), policies);
      console.endProgress();
      if (page != null) {
        page.write(new PlanPage(outlook).html());
      }
      if (arguments.asJson()) {
        PlanJson.write(outlook, console.out());
      } else if (!arguments.orderIsPrinted()) {
        new PlanTable(outlook).print(console);
        if (html != null) {
          console.print("");
          console.print("Page with pictures: " + Text.oneLine(html.toString()));
        }
      }
    }
    return DONE;
  }

  private DatasetOutlook outlook(Snapshot snapshot, List<ReadPolicy> policies) throws IOException {
    long memory = arguments.memory(snapshot);
    PlanInputs inputs = inputs(snapshot, memory);
    LabelCounts labels = LabelCounts.of(snapshot::label, snapshot.sampleCount());
    List<PolicyOutlook> outlooks = new ArrayList<>();
    for (ReadPolicy each : policies) {
      outlooks.add(outlook(each, with(each, inputs), labels, snapshot));
    }
    return new DatasetOutlook(
        dataset.path().toString(),
        inputs,
        epoch,
        memory,
        snapshot.dataBytes(),
        OrderBounds.of(inputs, epoch, labels, console.progress()),
        outlooks);
  }

  private void check() {
    arguments.check();
    if (nodes < 1) {
      throw arguments.wrong("--nodes must be 1 or more, not " + nodes);
    }
    if (epoch < 0) {
      throw arguments.wrong("--epoch must be 0 or more, not " + epoch);
    }
    if (epoch == Long.MAX_VALUE) {
      throw arguments.wrong("there is no epoch after " + epoch + " to compare with");
    }
    if (recommends) {
      checkRecommend();
    } else if (stepTime != null || probe != null) {
      throw arguments.wrong("--step-time and --probe are for --recommend");
    }
    if (arguments.wantsOrder() && policy.equals(ALL)) {
      throw arguments.wrong("--order is about one policy: name it with --policy");
    }
  }

  private void checkRecommend() {
    if (stepTime == null) {
      throw arguments.wrong("--recommend needs --step-time, what training on one batch takes");
    }
    if (arguments.wantsOrder() || epoch != 0 || html != null) {
      throw arguments.wrong("--order, --epoch and --html are about a plan, not for --recommend");
    }
    if (!policy.equals(ALL) && !Recommender.POLICIES.contains(policy)) {
      throw Failure.wrongCall("--recommend tries %s, not '%s'", Recommender.POLICIES, policy);
    }
    if (arguments.ranks(nodes) % nodes != 0) {
      throw arguments.wrong("--recommend needs as many ranks on each node as on the others");
    }
  }

  private void recommend() throws IOException {
    double step = Values.seconds("--step-time", Objects.requireNonNull(stepTime));
    Work work = new Work(Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY, step, true);
    try (Dataset opened = Dataset.open(dataset.path())) {
      ProbeResult probed = probe == null ? measured() : ProbeFile.read(probe);
      Snapshot snapshot = opened.snapshot();
      Recommender.Asked asked =
          new Recommender.Asked(
              policy.equals(ALL) ? Optional.empty() : Optional.of(policy),
              SampleLayout.of(snapshot),
              snapshot.dataBytes(),
              arguments.batchSize(),
              new World(arguments.ranks(nodes), nodes, 0),
              arguments.memory(snapshot),
              extents(probed, (double) snapshot.dataBytes() / Math.max(1, snapshot.sampleCount())),
              arguments.seed(),
              ProbeCosts.of(probed, work));
      Recommendation recommendation = recommendation(asked);
      console.endProgress();
      RecommendationOutput output =
          new RecommendationOutput(dataset.path().toString(), recommendation);
      if (arguments.asJson()) {
        output.writeJson(console.out());
      } else {
        output.print(console);
      }
    }
  }

  private ProbeResult measured() {
    try (ProbeFolder folder = ProbeFolder.in(dataset.path())) {
      return new Probe(folder, console.progress()).run();
    }
  }

  /** What suits the memory, and what gets all that the storage gives, if that holds samples. */
  private List<Long> extents(ProbeResult probed, double meanBytes) {
    if (arguments.extent() != ExtentSize.AUTO) {
      return List.of(arguments.extent());
    }
    return probed.saturatingBytes() < 2 * meanBytes
        ? List.of(ExtentSize.AUTO)
        : List.of(ExtentSize.AUTO, probed.saturatingBytes());
  }

  private Recommendation recommendation(Recommender.Asked asked) {
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

  /** What all policies have in common; the policy that is named in it is only the first of them. */
  private PlanInputs inputs(Snapshot snapshot, long memory) {
    World world = new World(arguments.ranks(nodes), nodes, 0);
    long perRank = memory / world.mostRanks();
    PlanSettings settings =
        new PlanSettings(
            policy,
            arguments.batchSize(),
            perRank,
            arguments.extent() == ExtentSize.AUTO
                ? PlanSettings.autoExtent(perRank)
                : arguments.extent(),
            arguments.tail());
    return PlanInputs.of(SampleLayout.of(snapshot), arguments.seed(), world, settings);
  }

  private static PlanInputs with(ReadPolicy policy, PlanInputs inputs) {
    PlanSettings settings = inputs.settings().withPolicy(policy.name());
    return inputs.with(policy.caches() ? settings.withCaching(OF_A_LONG_RUN) : settings);
  }

  private PolicyOutlook outlook(
      ReadPolicy each, PlanInputs inputs, LabelCounts labels, Snapshot snapshot)
      throws IOException {
    ReadPlan plan;
    ReadPlan next;
    try {
      plan = each.plan(inputs, epoch);
      next = each.plan(inputs, epoch + 1);
    } catch (Failure refused) {
      if (!policy.equals(ALL)) {
        throw refused;
      }
      return PolicyOutlook.refused(each, String.valueOf(refused.getMessage()));
    }
    Progress progress = console.progress();
    progress.begin("planning " + each.name(), Progress.Unit.SAMPLES, 2 * inputs.shares().samples());
    try (OrderFile order = arguments.openOrder(snapshot, console)) {
      return PolicyOutlook.of(each, PlannedEpoch.of(plan, next, labels, order, progress));
    }
  }
}
