package org.gristway.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleFunction;
import org.gristway.Progress;
import org.gristway.chart.Chart;
import org.gristway.chart.ChartAxis;
import org.gristway.chart.ChartLines;
import org.gristway.chart.ReportPage;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.policy.Policies;
import org.gristway.simulator.EpochModel;
import org.gristway.simulator.Scenario;
import org.gristway.simulator.Simulated;
import org.gristway.simulator.Simulated.Moment;
import org.gristway.simulator.Study;

/** What {@code simulate --html} draws. */
final class SimulatedPage {

  private static final int POWER = 4;
  private static final List<Double> MEMORY_PARTS =
      List.of(1 / 16.0, 1 / 8.0, 1 / 4.0, 1 / 2.0, 1.0, 2.0);
  private static final String PLAIN = "formula: plain";
  private static final String LOCALITY_AWARE = "formula: locality-aware";
  private static final int WIDTH = 480;
  private static final int WIDE = 900;
  private static final int HEIGHT = 400;

  private final Scenario scenario;
  private final List<Simulated> results;
  private final List<Scenario> counts;
  private final List<List<Simulated>> byNodes;
  private final List<Scenario> memories;
  private final List<List<Simulated>> byMemory;

  private SimulatedPage(
      Scenario scenario,
      List<Simulated> results,
      List<Scenario> counts,
      List<List<Simulated>> byNodes,
      List<Scenario> memories,
      List<List<Simulated>> byMemory) {
    this.scenario = scenario;
    this.results = results;
    this.counts = counts;
    this.byNodes = byNodes;
    this.memories = memories;
    this.byMemory = byMemory;
  }

  /**
   * Runs what is to be drawn.
   *
   * @param results of the scenario itself
   */
  static SimulatedPage of(
      Scenario scenario, SampleLayout layout, List<Simulated> results, Progress progress) {
    List<Scenario> counts = new ArrayList<>();
    for (int nodes = 1; nodes < Math.max(POWER * POWER, scenario.nodes()); nodes *= POWER) {
      if ((long) nodes * scenario.ranksPerNode() <= layout.sampleCount()) {
        counts.add(scenario.withNodes(nodes));
      }
    }
    counts.add(scenario);
    counts.sort((a, b) -> Integer.compare(a.nodes(), b.nodes()));
    // A baseline's memory is what it keeps: there is nothing to choose.
    List<String> planned =
        scenario.policies().stream()
            .map(Scenario.Tried::name)
            .filter(SimulatedPage::isPlanned)
            .toList();
    List<Scenario> memories = new ArrayList<>();
    if (!planned.isEmpty()) {
      for (double part : MEMORY_PARTS) {
        memories.add(scenario.withPolicies(planned).withMemoryTimes(part));
      }
    }
    List<Scenario> all = new ArrayList<>(counts);
    all.addAll(memories);
    List<List<Simulated>> drawn = new Study(all, layout).run(progress);
    return new SimulatedPage(
        scenario,
        results,
        counts,
        drawn.subList(0, counts.size()),
        memories,
        drawn.subList(counts.size(), drawn.size()));
  }

  private static boolean isPlanned(String policy) {
    return Policies.all().stream().map(ReadPolicy::name).anyMatch(policy::equals);
  }

  /** Baselines fetch, and then train: there is little to see. */
  private static boolean isDrawnOverTime(Simulated result) {
    return result.ran() && isPlanned(result.policy());
  }

  ReportPage page() {
    ReportPage page = new ReportPage("Simulation of " + scenario.name());
    page.lead(SimulatedOutput.heading(scenario));
    page.text(scenario.about());
    List<List<String>> rows = new ArrayList<>();
    List<List<String>> refused = new ArrayList<>();
    for (Simulated result : results) {
      if (result.ran()) {
        rows.add(SimulatedOutput.row(result));
      } else {
        refused.add(List.of(result.policy(), result.reason()));
      }
    }
    page.table(SimulatedOutput.HEADINGS, rows);
    page.wordTable(
        List.of(),
        SimulatedOutput.LEGEND.stream().map(line -> List.of(line.split(" +", 2))).toList());
    if (!refused.isEmpty()) {
      page.wordTable(List.of("cannot run", "why"), refused);
    }
    if (rows.isEmpty()) {
      return page;
    }
    page.heading("Time against nodes");
    page.wide(timeAgainstNodes());
    if (byMemory.stream().flatMap(List::stream).anyMatch(Simulated::ran)) {
      page.heading("Stall against memory");
      page.wide(stallAgainstMemory());
    }
    if (results.stream().anyMatch(SimulatedPage::isDrawnOverTime)) {
      page.heading("What one node does");
      page.text(
          "The first node, over the run. What has been asked for, received and waited is counted"
              + " from its beginning: where a line stops rising, nothing more is asked for, or nobody"
              + " waits.");
      page.pair(
          timeline("Memory in use (GB)", moment -> moment.residentBytes() / 1e9),
          timeline("Asked of storage (GB)", moment -> moment.storageBytes() / 1e9),
          timeline("Received from other nodes (GB)", moment -> moment.networkBytes() / 1e9),
          timeline("Time waited for data (s)", Moment::stallSeconds));
    }
    return page;
  }

  private ReportPage.Figure timeAgainstNodes() {
    ChartLines lines = lines();
    for (int i = 0; i < counts.size(); i++) {
      for (Simulated outcome : byNodes.get(i)) {
        if (outcome.ran()) {
          lines.add(outcome.policy(), counts.get(i).nodes(), outcome.epochSeconds().getLast());
        }
      }
    }
    if (scenario.ranksPerNode() == 1) {
      for (Scenario count : counts) {
        EpochModel formula = EpochModel.of(count);
        lines.add(PLAIN, count.nodes(), formula.plain());
        lines.add(LOCALITY_AWARE, count.nodes(), formula.localityAware());
      }
    }
    return new ReportPage.Figure(
        chart(
            lines,
            "Seconds of the last epoch, by the number of nodes",
            lines.powersOfX("nodes", POWER),
            lines.powersOfY("seconds of the last epoch", 10)),
        "Both axes are of powers: a line that falls evenly gets faster with every node, one that"
            + " lies flat is held up by what all share. The formula is that of Yang and Cong, which knows"
            + " rates alone.");
  }

  private ReportPage.Figure stallAgainstMemory() {
    ChartLines lines = lines();
    for (int i = 0; i < memories.size(); i++) {
      List<Simulated> outcomes = byMemory.get(i);
      for (Simulated outcome : outcomes) {
        if (outcome.ran()) {
          double memory = memories.get(i).policies().get(outcomes.indexOf(outcome)).memory() / 1e9;
          double share = 100 * outcome.stallSeconds() / outcome.seconds();
          lines.add(outcome.policy(), memory, share);
        }
      }
    }
    return new ReportPage.Figure(
        chart(
            lines,
            "Share of the run that was waited for data, by the memory of a node",
            lines.powersOfX("memory of a node (GB)", POWER),
            lines.upToY("waited for data, % of the run")),
        "With "
            + Text.count(scenario.nodes(), "node")
            + ". Policies alone: what else is compared"
            + " takes the memory it takes.");
  }

  private ReportPage.Figure timeline(String label, ToDoubleFunction<Moment> value) {
    ChartLines lines = lines();
    for (Simulated result : results.stream().filter(SimulatedPage::isDrawnOverTime).toList()) {
      for (Moment moment : result.timeline()) {
        lines.add(result.policy(), moment.seconds(), value.applyAsDouble(moment));
      }
    }
    return new ReportPage.Figure(
        chart(lines, label, lines.upToX("seconds"), lines.upToY(label)), label + ", over the run.");
  }

  private ChartLines lines() {
    List<String> names = new ArrayList<>(results.stream().map(Simulated::policy).toList());
    names.add(PLAIN);
    names.add(LOCALITY_AWARE);
    return new ChartLines(names);
  }

  private static String chart(ChartLines lines, String description, ChartAxis x, ChartAxis y) {
    return lines.on(new Chart(x.base() == 0 ? WIDTH : WIDE, HEIGHT, description, x, y)).svg();
  }
}
