package org.gristway.cli;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;
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
  private final List<Scenario> memories;
  private final Map<Scenario, List<Simulated>> known;

  private SimulatedPage(
      Scenario scenario,
      List<Simulated> results,
      List<Scenario> counts,
      List<Scenario> memories,
      Map<Scenario, List<Simulated>> known) {
    this.scenario = scenario;
    this.results = results;
    this.counts = counts;
    this.memories = memories;
    this.known = known;
  }

  private List<Simulated> outcomes(Scenario each) {
    return known.getOrDefault(each, List.of());
  }

  /**
   * Runs what is to be drawn and has not been run.
   *
   * @param given scenarios that differ in the number of nodes, the last of which is looked at
   *     closely
   * @param results of each
   */
  static SimulatedPage of(
      List<Scenario> given, List<List<Simulated>> results, SampleLayout layout, Progress progress) {
    Scenario scenario = given.getLast();
    Map<Scenario, List<Simulated>> known = new HashMap<>();
    for (int i = 0; i < given.size(); i++) {
      known.put(given.get(i), results.get(i));
    }
    List<Scenario> counts = given.size() > 1 ? new ArrayList<>(given) : upTo(scenario, layout);
    counts.sort(Comparator.comparingInt(Scenario::nodes));
    // A baseline's memory is what it keeps: there is nothing to choose.
    List<Simulated> planned =
        results.getLast().stream().filter(result -> isPlanned(result.policy())).toList();
    List<Scenario> memories = new ArrayList<>();
    if (!planned.isEmpty()) {
      Scenario ofPlans = scenario.withPolicies(planned.stream().map(Simulated::policy).toList());
      known.put(ofPlans, planned);
      MEMORY_PARTS.forEach(part -> memories.add(ofPlans.withMemoryTimes(part)));
    }
    List<Scenario> missing =
        Stream.concat(counts.stream(), memories.stream())
            .filter(each -> !known.containsKey(each))
            .toList();
    List<List<Simulated>> found = new Study(missing, layout).run(progress);
    for (int i = 0; i < missing.size(); i++) {
      known.put(missing.get(i), found.get(i));
    }
    return new SimulatedPage(scenario, results.getLast(), counts, memories, known);
  }

  /** Powers up to a scenario's number of nodes, or somewhat further, and the scenario. */
  private static List<Scenario> upTo(Scenario scenario, SampleLayout layout) {
    List<Scenario> counts = new ArrayList<>();
    for (int nodes = 1; nodes < Math.max(POWER * POWER, scenario.nodes()); nodes *= POWER) {
      boolean isOther = nodes != scenario.nodes();
      if (isOther && (long) nodes * scenario.ranksPerNode() <= layout.sampleCount()) {
        counts.add(scenario.withNodes(nodes));
      }
    }
    counts.add(scenario);
    return counts;
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
    if (memories.stream().flatMap(each -> outcomes(each).stream()).anyMatch(Simulated::ran)) {
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
    for (Scenario count : counts) {
      for (Simulated outcome : outcomes(count)) {
        if (outcome.ran()) {
          lines.add(outcome.policy(), count.nodes(), outcome.epochSeconds().getLast());
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
    for (Scenario each : memories) {
      for (int i = 0; i < each.policies().size(); i++) {
        Simulated outcome = outcomes(each).get(i);
        if (outcome.ran()) {
          double memory = each.policies().get(i).memory() / 1e9;
          lines.add(outcome.policy(), memory, 100 * outcome.stallShare());
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
