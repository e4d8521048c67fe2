package org.gristway.cli;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.plan.Caching;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;
import org.gristway.snapshot.Snapshot;
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
      "'gristway read' with the same options delivers exactly the order that is planned here."
    },
    footer = {"", "Example: gristway plan flowers.gw --memory 10%%"})
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
      description = "Which epoch to plan (default: 0).")
  private long epoch;

  /** As many epochs as a policy that counts them looks ahead, and no disk. */
  private static final Caching OF_A_LONG_RUN = new Caching(0, 32, Caching.Rates.USUAL);

  PlanCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    check();
    List<ReadPolicy> policies =
        policy.equals(ALL) ? Policies.all() : List.of(Policies.named(policy));
    try (Dataset opened = Dataset.open(dataset.path())) {
      Snapshot snapshot = opened.snapshot();
      long memory = arguments.memory(snapshot);
      PlanInputs inputs = inputs(snapshot, memory);
      List<PolicyOutlook> outlooks = new ArrayList<>();
      for (ReadPolicy each : policies) {
        outlooks.add(outlook(each, with(each, inputs), snapshot));
      }
      console.endProgress();
      if (arguments.asJson()) {
        PlanJson.write(inputs, memory, snapshot.dataBytes(), outlooks, console.out());
      } else if (!arguments.orderIsPrinted()) {
        new PlanTable(console)
            .print(dataset.path().toString(), inputs, memory, snapshot.dataBytes(), outlooks);
      }
    }
    return DONE;
  }

  private void check() {
    arguments.check();
    if (nodes < 1) {
      throw arguments.wrong("--nodes must be 1 or more, not " + nodes);
    }
    if (epoch < 0) {
      throw arguments.wrong("--epoch must be 0 or more, not " + epoch);
    }
    if (arguments.wantsOrder() && policy.equals(ALL)) {
      throw arguments.wrong("--order is about one policy: name it with --policy");
    }
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

  private PolicyOutlook outlook(ReadPolicy each, PlanInputs inputs, Snapshot snapshot)
      throws IOException {
    ReadPlan plan;
    try {
      plan = each.plan(inputs, epoch);
    } catch (Failure refused) {
      if (!policy.equals(ALL)) {
        throw refused;
      }
      return PolicyOutlook.refused(each, String.valueOf(refused.getMessage()));
    }
    Progress progress = console.progress();
    progress.begin("planning " + each.name(), Progress.Unit.SAMPLES, inputs.shares().samples());
    try (OrderFile order = arguments.openOrder(snapshot, console)) {
      return PolicyOutlook.of(each, PlannedEpoch.of(plan, order, progress));
    }
  }
}
