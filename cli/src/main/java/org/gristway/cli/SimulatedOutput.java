package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.gristway.simulator.EpochModel;
import org.gristway.simulator.Scenario;
import org.gristway.simulator.Simulated;
import tools.jackson.core.JsonGenerator;

/** What {@code simulate} prints. Programs read the JSON, so its names stay. */
final class SimulatedOutput {

  static final List<String> HEADINGS =
      List.of(
          "policy",
          "run",
          "first epoch",
          "last epoch",
          "stall",
          "share",
          "storage",
          "network",
          "memory",
          "balance");

  static final List<String> LEGEND =
      List.of(
          "stall    seconds that the rank that waited longest for data has waited; share: of the run",
          "storage  read by all nodes in the run; network: sent between nodes",
          "memory   of the node that has most",
          "balance  what the node reads from storage that reads most, relative to the mean");

  private final List<Scenario> scenarios;
  private final List<List<Simulated>> results;

  /**
   * @param scenarios that differ in the number of nodes
   * @param results of each scenario, by policy
   */
  SimulatedOutput(List<Scenario> scenarios, List<List<Simulated>> results) {
    this.scenarios = scenarios;
    this.results = results;
  }

  /** One scenario stands for itself; several stand in a list. */
  void writeJson(OutputStream out) throws IOException {
    JsonOutput.write(
        out,
        json -> {
          json.writeStringProperty("scenario", scenarios.getFirst().name());
          if (scenarios.size() == 1) {
            write(0, json);
          } else {
            json.writeArrayPropertyStart("runs");
            for (int i = 0; i < scenarios.size(); i++) {
              json.writeStartObject();
              write(i, json);
              json.writeEndObject();
            }
            json.writeEndArray();
          }
        });
  }

  private void write(int scenario, JsonGenerator json) {
    json.writeNumberProperty("nodes", scenarios.get(scenario).nodes());
    json.writeNumberProperty("exchange", scenarios.get(scenario).exchange().share());
    json.writeArrayPropertyStart("policies");
    results.get(scenario).forEach(result -> write(result, json));
    json.writeEndArray();
    if (scenarios.get(scenario).ranksPerNode() == 1) {
      EpochModel formula = EpochModel.of(scenarios.get(scenario));
      json.writeObjectPropertyStart("formula");
      json.writeNumberProperty("plain", formula.plain());
      json.writeNumberProperty("randomOwner", formula.randomOwner());
      json.writeNumberProperty("localityAware", formula.localityAware());
      json.writeEndObject();
    }
  }

  private static void write(Simulated result, JsonGenerator json) {
    json.writeStartObject();
    json.writeStringProperty("name", result.policy());
    if (result.ran()) {
      json.writeNumberProperty("seconds", result.seconds());
      json.writeNumberProperty("stallSeconds", result.stallSeconds());
      json.writeNumberProperty("stallShare", result.stallShare());
      json.writeNumberProperty("storageBytes", result.storageBytes());
      json.writeNumberProperty("networkBytes", result.networkBytes());
      json.writeNumberProperty("peakResidentBytes", result.peakResidentBytes());
      json.writeArrayPropertyStart("epochSeconds");
      result.epochSeconds().forEach(json::writeNumber);
      json.writeEndArray();
      json.writeObjectPropertyStart("perNode");
      write("storageBytes", result.nodes().storage(), json);
      write("networkBytes", result.nodes().network(), json);
      write("stallSeconds", result.nodes().stall(), json);
      json.writeEndObject();
      json.writeArrayPropertyStart("firstNode");
      for (Simulated.Moment moment : result.timeline()) {
        json.writeStartObject();
        json.writeNumberProperty("seconds", moment.seconds());
        json.writeNumberProperty("residentBytes", moment.residentBytes());
        json.writeNumberProperty("storageBytes", moment.storageBytes());
        json.writeNumberProperty("networkBytes", moment.networkBytes());
        json.writeNumberProperty("stallSeconds", moment.stallSeconds());
        json.writeEndObject();
      }
      json.writeEndArray();
    } else {
      for (String name :
          List.of(
              "seconds",
              "stallSeconds",
              "stallShare",
              "storageBytes",
              "networkBytes",
              "peakResidentBytes")) {
        json.writeNullProperty(name);
      }
      json.writeStringProperty("reason", result.reason());
    }
    json.writeEndObject();
  }

  private static void write(String name, Simulated.Balance balance, JsonGenerator json) {
    json.writeObjectPropertyStart(name);
    json.writeNumberProperty("least", balance.least());
    json.writeNumberProperty("mean", balance.mean());
    json.writeNumberProperty("most", balance.most());
    json.writeEndObject();
  }

  void print(Console console) throws IOException {
    for (int i = 0; i < scenarios.size(); i++) {
      if (i > 0) {
        console.print("");
      }
      console.print(heading(scenarios.get(i)));
      console.print("");
      List<List<String>> rows = new ArrayList<>();
      rows.add(HEADINGS);
      List<Simulated> policies = results.get(i);
      policies.forEach(result -> rows.add(row(result)));
      Columns.print(rows, row -> policies.get(row - 1).reason(), console);
      if (scenarios.get(i).ranksPerNode() == 1) {
        console.print("");
        console.print(formula(EpochModel.of(scenarios.get(i))));
      }
    }
    console.print("");
    for (String line : LEGEND) {
      console.print(line);
    }
  }

  /** What is simulated, in a line. */
  static String heading(Scenario scenario) {
    return String.format(
        "%s: %s of %s on average, %s on %s, %s%s",
        scenario.name(),
        Text.count(scenario.dataset().samples(), "sample"),
        Text.bytes(scenario.dataset().mean()),
        Text.count(scenario.ranks(), "rank"),
        Text.count(scenario.nodes(), "node"),
        Text.count(scenario.epochs(), "epoch"),
        exchange(scenario));
  }

  private static String exchange(Scenario scenario) {
    List<String> policies = scenario.exchanging();
    return policies.isEmpty()
        ? ""
        : String.format(
            Locale.ROOT,
            "; ranks exchange %.0f %% with %s",
            100 * scenario.exchange().share(),
            String.join(", ", policies));
  }

  /** What stands beside the simulation: it knows rates alone. */
  static String formula(EpochModel model) {
    return String.format(
        "by the formula of Yang and Cong, an epoch takes %s with everything from storage, %s with what"
            + " is kept from a random owner, %s locality-aware",
        seconds(model.plain()), seconds(model.randomOwner()), seconds(model.localityAware()));
  }

  /** The cells of a policy, which has but its name if it cannot run. */
  static List<String> row(Simulated result) {
    return result.ran()
        ? List.of(
            result.policy(),
            seconds(result.seconds()),
            seconds(result.epochSeconds().getFirst()),
            seconds(result.epochSeconds().getLast()),
            seconds(result.stallSeconds()),
            String.format(Locale.ROOT, "%.1f %%", 100 * result.stallShare()),
            Text.bytes(result.storageBytes()),
            Text.bytes(result.networkBytes()),
            Text.bytes(result.peakResidentBytes()),
            String.format(Locale.ROOT, "%.2f", result.nodes().storage().mostToMean()))
        : List.of(result.policy());
  }

  private static String seconds(double seconds) {
    return String.format(Locale.ROOT, seconds < 100 ? "%,.2f s" : "%,.0f s", seconds);
  }
}
