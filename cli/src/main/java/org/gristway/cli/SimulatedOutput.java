package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.gristway.simulator.Scenario;
import org.gristway.simulator.Simulated;
import tools.jackson.core.JsonGenerator;

/** What {@code simulate} prints. Programs read the JSON, so its names stay. */
final class SimulatedOutput {

  private static final List<String> HEADINGS =
      List.of(
          "policy", "run", "first epoch", "last epoch", "stall", "storage", "network", "memory");

  private static final List<String> LEGEND =
      List.of(
          "stall    seconds that the rank that waited longest for data has waited",
          "storage  read by all nodes in the run; network: sent between nodes",
          "memory   of the node that has most");

  private SimulatedOutput() {}

  static void writeJson(Scenario scenario, List<Simulated> results, OutputStream out)
      throws IOException {
    JsonOutput.write(
        out,
        json -> {
          json.writeStringProperty("scenario", scenario.name());
          json.writeNumberProperty("nodes", scenario.nodes());
          json.writeArrayPropertyStart("policies");
          results.forEach(result -> write(result, json));
          json.writeEndArray();
        });
  }

  private static void write(Simulated result, JsonGenerator json) {
    json.writeStartObject();
    json.writeStringProperty("name", result.policy());
    if (result.ran()) {
      json.writeNumberProperty("seconds", result.seconds());
      json.writeNumberProperty("stallSeconds", result.stallSeconds());
      json.writeNumberProperty("storageBytes", result.storageBytes());
      json.writeNumberProperty("networkBytes", result.networkBytes());
      json.writeNumberProperty("peakResidentBytes", result.peakResidentBytes());
      json.writeArrayPropertyStart("epochSeconds");
      result.epochSeconds().forEach(json::writeNumber);
      json.writeEndArray();
    } else {
      for (String name :
          List.of("seconds", "stallSeconds", "storageBytes", "networkBytes", "peakResidentBytes")) {
        json.writeNullProperty(name);
      }
      json.writeStringProperty("reason", result.reason());
    }
    json.writeEndObject();
  }

  static void print(Scenario scenario, List<Simulated> results, Console console)
      throws IOException {
    console.print(
        String.format(
            "%s: %s of %s on average, %s on %s, %s",
            scenario.name(),
            Text.count(scenario.dataset().samples(), "sample"),
            Text.bytes(scenario.dataset().mean()),
            Text.count(scenario.ranks(), "rank"),
            Text.count(scenario.nodes(), "node"),
            Text.count(scenario.epochs(), "epoch")));
    console.print("");
    List<List<String>> rows = new ArrayList<>();
    rows.add(HEADINGS);
    for (Simulated result : results) {
      rows.add(
          result.ran()
              ? List.of(
                  result.policy(),
                  seconds(result.seconds()),
                  seconds(result.epochSeconds().getFirst()),
                  seconds(result.epochSeconds().getLast()),
                  seconds(result.stallSeconds()),
                  Text.bytes(result.storageBytes()),
                  Text.bytes(result.networkBytes()),
                  Text.bytes(result.peakResidentBytes()))
              : List.of(result.policy()));
    }
    Columns.print(rows, row -> results.get(row - 1).reason(), console);
    console.print("");
    for (String line : LEGEND) {
      console.print(line);
    }
  }

  private static String seconds(double seconds) {
    return String.format(Locale.ROOT, seconds < 100 ? "%,.2f s" : "%,.0f s", seconds);
  }
}
