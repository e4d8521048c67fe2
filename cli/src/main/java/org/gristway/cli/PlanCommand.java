package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.plan.Caching;
import org.gristway.plan.Exchange;
import org.gristway.plan.Homes;
import org.gristway.plan.LabelCounts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;
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
      names = "--exchange",
      paramLabel = "SHARE",
      description =
          "What share of the deliveries, from 0 to 1, may come from any rank, where the others come"
              + " from what a rank reads itself (default: 0). For redirect and chunk-shuffle.")
  private double exchange;

  @Option(
      names = "--homes",
      paramLabel = "afresh|hashed|placed",
      converter = HomesName.class,
      description =
          "Who reads what is exchanged: extents dealt to ranks in every epoch (default), each extent"
              + " by the same rank in all epochs, or by a rank of the node that 'gristway place' gives"
              + " its chunk to. The last two need --exchange 1.")
  private Homes homes = Homes.AFRESH;

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

  @Mixin private Recommending recommending = new Recommending();

  /** As many epochs as a policy that counts them looks ahead, and no disk. */
  private static final Caching OF_A_LONG_RUN = new Caching(0, 32, Caching.Rates.USUAL);

  PlanCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    check();
    if (recommending.isWanted()) {
      recommending.run(dataset.path(), onePolicy(), arguments, nodes, console);
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

  private Optional<String> onePolicy() {
    return policy.equals(ALL) ? Optional.empty() : Optional.of(policy);
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
    recommending.check(onePolicy(), arguments, nodes);
    if (recommending.isWanted() && (arguments.wantsOrder() || epoch != 0 || html != null)) {
      throw arguments.wrong("--order, --epoch and --html are about a plan, not for --recommend");
    }
    if (exchange > 0 && !policy.equals(ALL) && !Policies.named(policy).exchanges()) {
      throw Failure.wrongCall("--exchange has no meaning for policy '%s'", policy);
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
            arguments.tail(),
            Caching.NONE,
            Exchange.of(exchange).withHomes(homes));
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
