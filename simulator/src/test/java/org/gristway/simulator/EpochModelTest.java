package org.gristway.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Where latency and order do not matter, the formula and the simulation must agree. */
@Tag("java")
class EpochModelTest {

  private static final int SAMPLES = 64_000;
  private static final double BYTES = SAMPLES * 100e3;

  private static Scenario scenario(int nodes, String... lines) {
    String text =
        """
        name: formula
        samples: 64000
        sample-bytes: fixed 100KB
        batch: 64
        epochs: 2
        storage.page: 1
        policies: sample-order redirect locality
        """;
    return Scenario.parse(text + String.join("\n", lines), "test").withNodes(nodes);
  }

  private static double steady(Scenario scenario, String policy) {
    Simulated result = new Simulation(scenario.withPolicies(List.of(policy))).run().getFirst();
    assertThat(result.reason()).isEmpty();
    return result.epochSeconds().getLast();
  }

  @ParameterizedTest
  @CsvSource({"1, 100MB", "4, 100MB", "16, 100MB", "4, 10GB", "16, 10GB"})
  void plain_loading_stops_scaling_where_the_store_is_used_up(int nodes, String compute) {
    Scenario scenario =
        scenario(nodes, "storage.total: 1GB", "work.compute-rate: " + compute, "memory: 100MB");
    EpochModel model = new EpochModel(BYTES, nodes, 64, 0, scenario.cost());
    assertThat(steady(scenario, "sample-order") / model.plain()).isCloseTo(1, within(0.05));
    assertThat(steady(scenario, "redirect") / model.plain()).isCloseTo(1, within(0.05));
  }

  @ParameterizedTest
  @CsvSource({"4, 100MB, 1GB", "16, 100MB, 1GB", "4, 10GB, 20MB", "16, 10GB, 20MB"})
  void only_the_imbalance_moves_once_all_is_cached(int nodes, String compute, String network) {
    Scenario scenario =
        scenario(
            nodes,
            "storage.total: 1GB",
            "work.compute-rate: " + compute,
            "network.rate: " + network,
            "memory: 100GB");
    EpochModel model = new EpochModel(BYTES, nodes, 64, 1, scenario.cost());
    // A step lasts as long as the link of the rank that gets most; the formula has the mean.
    double ratio = steady(scenario, "locality") / model.localityAware();
    boolean byNetwork = model.localityAware() > model.compute();
    assertThat(ratio).isBetween(0.95, byNetwork ? 3.0 : 1.05);
    assertThat(model.randomOwner()).isGreaterThanOrEqualTo(model.localityAware());
  }

  @Test
  void the_moved_share_is_the_published_one() {
    assertThat(EpochModel.movedShare(16, 32)).isCloseTo(0.068, within(0.0005));
    assertThat(EpochModel.movedShare(16, 128)).isCloseTo(0.034, within(0.0005));
    assertThat(EpochModel.movedShare(16, 256)).isCloseTo(0.024, within(0.0005));
  }
}
