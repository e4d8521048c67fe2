package org.gristway.simulator;

import java.util.stream.Collectors;
import org.gristway.simulator.CostModel.Network;
import org.gristway.simulator.CostModel.Storage;
import org.gristway.simulator.CostModel.Work;

/** Writes a scenario. For one thread. */
final class ScenarioText {

  private final StringBuilder text = new StringBuilder();

  private ScenarioText() {}

  /** What {@link Scenario#parse} makes the same scenario of. */
  static String of(Scenario scenario) {
    ScenarioText written = new ScenarioText();
    scenario.about().lines().forEach(line -> written.text.append("# ").append(line).append('\n'));
    written.run(scenario);
    written.cost(scenario.cost());
    written.policies(scenario);
    return written.text.toString();
  }

  private void line(String key, String value) {
    text.append(key).append(": ").append(value).append('\n');
  }

  private void whole(String key, long value) {
    line(key, Values.whole(value));
  }

  private void count(String key, int value) {
    line(key, Integer.toString(value));
  }

  /** Bytes, or bytes a second. */
  private void bytes(String key, double value) {
    line(key, Values.number(value));
  }

  private void number(String key, double value) {
    line(key, Values.plain(value));
  }

  private void curve(String key, Curve value) {
    line(key, value.toString());
  }

  private void run(Scenario scenario) {
    line("name", scenario.name());
    line("samples", Long.toString(scenario.dataset().samples()));
    line("sample-bytes", scenario.dataset().sizes());
    line("classes", Long.toString(scenario.dataset().classes()));
    count("epochs", scenario.epochs());
    count("batch", scenario.batchSize());
    count("nodes", scenario.nodes());
    count("ranks-per-node", scenario.ranksPerNode());
    if (scenario.simulated() != Integer.MAX_VALUE) {
      count("simulated", scenario.simulated());
    }
    whole("memory", scenario.memory());
    whole("disk", scenario.disk());
    whole("extent", scenario.extentBytes());
    count("ahead", scenario.ahead());
    number("exchange", scenario.exchange().share());
    count("window", scenario.exchange().window());
    line("seed", Long.toString(scenario.seed()));
  }

  private void cost(CostModel cost) {
    Storage storage = cost.storage();
    number("storage.latency", storage.latency());
    bytes("storage.rate", storage.rate());
    number("storage.requests", storage.requests());
    line("storage.by-size", storage.bySize().textBySize());
    curve("storage.by-depth", storage.byDepth());
    line("storage.per-processor", storage.perProcessor().textBySize());
    curve("storage.stream", storage.stream());
    curve("storage.total", storage.total());
    number("storage.total-requests", storage.totalRequests());
    count("storage.depth", storage.depth());
    whole("storage.page", storage.page());
    Network network = cost.network();
    number("network.latency", network.latency());
    bytes("network.rate", network.rate());
    bytes("network.bisection", network.bisection());
    bytes("memory-rate", cost.memoryRate());
    number("sample-seconds", cost.sampleSeconds());
    bytes("disk-rate", cost.diskRate());
    number("processors", cost.processors());
    Work work = cost.work();
    bytes("work.preparation-rate", work.preparationRate());
    bytes("work.compute-rate", work.computeRate());
    number("work.compute-seconds", work.computeSeconds());
    line("work.barrier", Boolean.toString(work.barrier()));
  }

  /** Of a policy, what differs from all of them. */
  private void policies(Scenario scenario) {
    line(
        "policies",
        scenario.policies().stream().map(Scenario.Tried::name).collect(Collectors.joining(" ")));
    for (Scenario.Tried tried : scenario.policies()) {
      if (tried.memory() != scenario.memory()) {
        whole(tried.name() + ".memory", tried.memory());
      }
      if (tried.ahead() != scenario.ahead()) {
        count(tried.name() + ".ahead", tried.ahead());
      }
      if (tried.preload()) {
        line(tried.name() + ".preload", "true");
      }
      if (tried.byFrequency()) {
        line(tried.name() + ".by-frequency", "true");
      }
    }
  }
}
