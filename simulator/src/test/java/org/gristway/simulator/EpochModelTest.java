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

  private static Scenario scenario(int nodes, int epochs, String... lines) {
    String text =
        """
        name: formula
        samples: 64000
        sample-bytes: fixed 100KB
        batch: 64
        storage.page: 1
        policies: sample-order redirect locality clairvoyant
        epochs: %d
        """;
    String all = text.formatted(epochs) + String.join("\n", lines);
    return Scenario.parse(all, "test").withNodes(nodes);
  }

  private static Simulated run(Scenario scenario, String policy) {
    Simulated result = new Simulation(scenario.withPolicies(List.of(policy))).run().getFirst();
    assertThat(result.reason()).isEmpty();
    return result;
  }

  /** Seconds of the epochs after the first, on average. */
  private static double steady(Simulated result) {
    return result.epochSeconds().stream()
        .skip(1)
        .mapToDouble(Double::doubleValue)
        .average()
        .orElse(0);
  }

  @ParameterizedTest
  @CsvSource({"1, 100MB", "4, 100MB", "16, 100MB", "4, 10GB", "16, 10GB"})
  void plain_loading_stops_scaling_where_the_store_is_used_up(int nodes, String compute) {
    Scenario scenario =
        scenario(nodes, 2, "storage.total: 1GB", "work.compute-rate: " + compute, "memory: 100MB");
    EpochModel model = new EpochModel(BYTES, nodes, 64, 0, scenario.cost());
    for (String policy : List.of("sample-order", "redirect")) {
      assertThat(steady(run(scenario, policy)) / model.plain()).isCloseTo(1, within(0.05));
    }
  }

  @ParameterizedTest
  @CsvSource({"4, 100MB, 1GB", "16, 100MB, 1GB", "4, 10GB, 20MB", "16, 10GB, 20MB"})
  void only_the_imbalance_moves_once_all_is_cached(int nodes, String compute, String network) {
    String[] machine = {
      "storage.total: 1GB",
      "work.compute-rate: " + compute,
      "network.rate: " + network,
      "memory: 100GB"
    };
    int epochs = 6;
    Scenario together = scenario(nodes, epochs, machine);
    Scenario apart = scenario(nodes, epochs, String.join("\n", machine) + "\nwork.barrier: false");
    EpochModel model = new EpochModel(BYTES, nodes, 64, 1, together.cost());
    Simulated result = run(apart, "locality");
    double moved = result.networkBytes() / BYTES / (epochs - 1); // none in the first
    assertThat(moved / EpochModel.movedShare(nodes, 64)).isCloseTo(1, within(0.05));
    assertThat(steady(result) / model.localityAware()).isCloseTo(1, within(0.05));
    // With a barrier a step lasts as long as the busiest of all links has to do, not as their mean.
    boolean byNetwork = model.localityAware() > model.compute();
    assertThat(steady(run(together, "locality")) / model.localityAware())
        .isBetween(0.95, byNetwork ? 1.4 : 1.05);
    assertThat(model.randomOwner()).isGreaterThanOrEqualTo(model.localityAware());
  }

  /** In the second epoch every sample is with the rank that got it in the first: any. */
  @ParameterizedTest
  @CsvSource({"4, 100MB, 1GB", "16, 100MB, 1GB", "4, 10GB, 50MB", "16, 10GB, 50MB"})
  void all_but_a_ranks_own_part_moves_from_random_owners(
      int nodes, String compute, String network) {
    Scenario scenario =
        scenario(
                nodes,
                2,
                "storage.total: 100MB",
                "work.compute-rate: " + compute,
                "network.rate: " + network,
                "memory: 26MB",
                "disk: 100GB")
            // Many samples, or those count that are on their way when the epoch begins.
            .withDataset(new Described(4 * SAMPLES, Described.Kind.FIXED, 100e3, 0, 1));
    EpochModel model = new EpochModel(4 * BYTES, nodes, 64, 1, scenario.cost());
    Simulated result = run(scenario, "clairvoyant");
    assertThat(result.networkBytes() / BYTES / 4).isCloseTo(1 - 1.0 / nodes, within(0.01));
    assertThat(steady(result) / model.randomOwner()).isCloseTo(1, within(0.05));
  }

  @ParameterizedTest
  @CsvSource({
    "4, 850MB, locality",
    "16, 270MB, locality",
    "4, 850MB, clairvoyant",
    "16, 270MB, clairvoyant"
  })
  void the_store_gives_the_other_half_if_half_is_cached(int nodes, String memory, String policy) {
    Scenario scenario =
        scenario(
            nodes,
            2,
            "storage.total: 1GB",
            "work.compute-rate: 10GB",
            "network.rate: 1GB",
            "memory: " + memory);
    Simulated result = run(scenario, policy);
    double cached = 2 - result.storageBytes() / BYTES; // what the second epoch does not read
    assertThat(cached).isBetween(0.45, 0.55);
    EpochModel model = new EpochModel(BYTES, nodes, 64, cached, scenario.cost());
    double formula = policy.equals("locality") ? model.localityAware() : model.randomOwner();
    assertThat(formula).isCloseTo((1 - cached) * BYTES / 1e9, within(0.001));
    assertThat(steady(result) / formula).isCloseTo(1, within(0.05));
  }

  @Test
  void the_moved_share_is_the_published_one() {
    assertThat(EpochModel.movedShare(16, 32)).isCloseTo(0.068, within(0.0005));
    assertThat(EpochModel.movedShare(16, 128)).isCloseTo(0.034, within(0.0005));
    assertThat(EpochModel.movedShare(16, 256)).isCloseTo(0.024, within(0.0005));
  }
}
