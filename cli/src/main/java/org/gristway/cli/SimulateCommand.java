package org.gristway.cli;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.plan.SampleLayout;
import org.gristway.simulator.Described;
import org.gristway.simulator.Scenario;
import org.gristway.simulator.Scenarios;
import org.gristway.simulator.Simulated;
import org.gristway.simulator.Study;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Runs policies in virtual time. */
@Command(
    name = "simulate",
    description = {
      "Tells how long training would take with each policy, on machines that need not exist: the same"
          + " plans as a real run's, carried out in virtual time.",
      "Scenarios that come along: nopfs-1, nopfs-2, nopfs-3, nopfs-4, imagenet-1k, imagenet-21k,"
          + " librispeech."
    },
    footer = {"", "Example: gristway simulate --scenario imagenet-1k --nodes 64"})
final class SimulateCommand implements CliCommand {

  private final Console console;

  @Parameters(
      arity = "0..1",
      paramLabel = "DATASET",
      description = "A dataset to simulate with, in place of the one that the scenario describes.")
  private @Nullable Path dataset;

  @SuppressWarnings("NullAway.Init")
  @Option(
      names = "--scenario",
      required = true,
      paramLabel = "NAME",
      description = "One that comes along, or a file as --print writes them.")
  private String scenario;

  @Option(
      names = "--nodes",
      paramLabel = "COUNT",
      split = ",",
      description =
          "Machines, in place of the scenario's; several counts (1,4,16) are set beside each"
              + " other.")
  private List<Integer> nodes = new ArrayList<>();

  @Option(
      names = "--policy",
      paramLabel = "NAME",
      split = ",",
      description = "Only these of the scenario's policies.")
  private List<String> policies = new ArrayList<>();

  @Option(
      names = "--exchange",
      paramLabel = "SHARE",
      description =
          "What share of the deliveries, from 0 to 1, may come from any rank, in place of the"
              + " scenario's. For redirect and chunk-shuffle; others read for themselves.")
  private @Nullable Double exchange;

  @Option(
      names = "--print",
      description =
          "Print the scenario itself, as other options make it, to be changed; of DATASET, the"
              + " number and mean size of its samples.")
  private boolean print;

  @Option(names = "--json", description = "Print the result as one JSON object.")
  private boolean asJson;

  @Option(
      names = "--html",
      paramLabel = "FILE",
      description =
          "Draw a page: time against nodes, stall against memory, and what one node does over the"
              + " run. Takes about ten times as long.")
  private @Nullable Path html;

  SimulateCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    String text = text();
    Scenario given = Scenario.parse(text, scenario);
    Scenario asked = policies.isEmpty() ? given : given.withPolicies(policies);
    Scenario mixed = exchange == null ? asked : withExchange(asked, exchange);
    if (dataset == null) {
      answer(text, given, mixed, () -> mixed.dataset().layout(mixed.seed()));
      return DONE;
    }
    try (Dataset opened = Dataset.open(dataset)) {
      Snapshot snapshot = opened.snapshot();
      Scenario ofDataset = mixed.withDataset(described(snapshot));
      answer(text, given, ofDataset, () -> SampleLayout.of(snapshot));
    }
    return DONE;
  }

  /**
   * @param text of the given scenario
   * @param asked what options have made of it, but for the nodes
   */
  private void answer(String text, Scenario given, Scenario asked, Supplier<SampleLayout> layout)
      throws IOException {
    List<Scenario> counts =
        nodes.isEmpty() ? List.of(asked) : nodes.stream().map(asked::withNodes).toList();
    if (!print) {
      show(counts, layout.get());
      return;
    }
    if (counts.size() > 1) {
      throw Failure.wrongCall("--print is for one number of nodes, not for %d", counts.size());
    }
    // As it was written, where options change nothing: that has its comments.
    boolean isGiven = counts.getFirst().equals(given);
    console.print((isGiven ? text : counts.getFirst().text()).stripTrailing());
  }

  /** Refused where it would change nothing for a policy that is asked for by its name. */
  private Scenario withExchange(Scenario asked, double share) {
    Scenario mixed = asked.withExchange(share);
    if (share > 0) {
      for (String policy : policies) {
        if (!mixed.exchanging().contains(policy)) {
          throw Failure.wrongCall("--exchange has no meaning for policy '%s'", policy);
        }
      }
      if (mixed.exchanging().isEmpty()) {
        throw Failure.wrongCall(
            "--exchange has no meaning for scenario %s: none of its policies can", mixed.name());
      }
    }
    return mixed;
  }

  private String text() throws IOException {
    if (Scenarios.names().contains(scenario)) {
      return Scenarios.text(scenario);
    }
    Path file = Path.of(scenario);
    if (!Files.isRegularFile(file)) {
      throw Failure.wrongCall(
          "there is no scenario '%s', and no file of that name; there are %s",
          scenario, Scenarios.names());
    }
    return Files.readString(file, StandardCharsets.UTF_8);
  }

  private static Described described(Snapshot snapshot) {
    long samples = snapshot.sampleCount();
    double mean = Math.max(1, (double) snapshot.dataBytes() / Math.max(1, samples));
    return new Described(samples, Described.Kind.FIXED, mean, 0, 1);
  }

  private void show(List<Scenario> counts, SampleLayout layout) throws IOException {
    PageFile page = html == null ? null : PageFile.at(html);
    List<List<Simulated>> results = new Study(counts, layout).run(console.progress());
    SimulatedOutput output = new SimulatedOutput(counts, results);
    if (page != null) {
      page.write(SimulatedPage.of(counts, results, layout, console.progress()).page().html());
    }
    console.endProgress();
    if (asJson) {
      output.writeJson(console.out());
    } else {
      output.print(console);
    }
  }
}
