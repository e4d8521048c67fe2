package org.gristway.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

@Tag("java")
class SimulationTest {

  /** 20,000 samples of 100 KB: 2 GB, on one node with a tenth of it in memory. */
  private static final String PLAIN =
      """
      name: plain
      samples: 20000
      sample-bytes: fixed 100KB
      memory: 200MB
      batch: 50
      policies: perfect sample-order staging chunk-shuffle redirect redirect-position unbounded
      """;

  private static Simulated run(String policy, String... lines) {
    String text = PLAIN + String.join("\n", lines);
    Scenario scenario = Scenario.parse(text, "test").withPolicies(List.of(policy));
    Simulated result = new Simulation(scenario).run().getFirst();
    assertThat(result.reason()).isEmpty();
    return result;
  }

  static List<String> scenarios() {
    return Scenarios.names();
  }

  @ParameterizedTest
  @MethodSource("scenarios")
  void every_scenario_that_comes_along_can_be_read(String name) {
    Scenario scenario = Scenarios.named(name);
    assertThat(scenario.name()).isEqualTo(name);
    assertThat(scenario.about()).isNotEmpty();
    assertThat(scenario.policies()).hasSizeGreaterThan(5);
  }

  @ParameterizedTest
  @CsvSource({"redirect", "chunk-shuffle", "sample-order", "staging"})
  void storage_that_is_slower_than_training_decides(String policy) {
    Simulated result = run(policy, "storage.rate: 100MB", "storage.page: 1");
    assertThat(result.seconds()).isCloseTo(20, within(0.4));
    assertThat(result.stallSeconds()).isCloseTo(20, within(0.4));
    assertThat(result.storageBytes()).isEqualTo(2_000_000_000L);
  }

  @ParameterizedTest
  @CsvSource({"redirect", "chunk-shuffle", "sample-order", "staging", "redirect-position"})
  void training_that_is_slower_than_storage_hides_it(String policy) {
    Simulated result = run(policy, "storage.rate: 1GB", "work.compute-rate: 100MB", "epochs: 3");
    assertThat(result.seconds()).isCloseTo(60, within(1.0));
    assertThat(result.stallSeconds()).isLessThan(1);
  }

  @Test
  void requests_a_second_decide_what_small_reads_take() {
    String[] disk = {"storage.rate: 180MB", "storage.requests: 200"};
    // 20,000 requests at 200 a second, against 2,000 extents of 10 samples at the full rate.
    assertThat(run("sample-order", disk).seconds()).isCloseTo(100, within(1.0));
    assertThat(run("redirect", disk).seconds()).isCloseTo(2000e6 / 180e6, within(0.4));
  }

  @Test
  void storage_may_give_more_to_larger_requests() {
    String[] disk = {"storage.by-size: 50KB=10MB 150KB=30MB 1MB=100MB", "storage.page: 1"};
    assertThat(run("sample-order", disk).seconds()).isCloseTo(2000e6 / 20e6, within(1.0));
    assertThat(run("redirect", disk).seconds()).isCloseTo(2000e6 / 100e6, within(0.4));
  }

  @Test
  void samples_take_their_time_beside_their_bytes() {
    String[] slow = {"sample-seconds: 1ms", "memory-rate: 200MB"};
    assertThat(run("redirect", slow).seconds()).isCloseTo(20 + 2000 / 200.0, within(0.1));
  }

  @Test
  void what_stays_in_memory_is_copied_once() {
    Simulated result = run("unbounded", "epochs: 2", "sample-seconds: 100us", "memory-rate: 200MB");
    assertThat(result.epochSeconds().get(0)).isCloseTo(2 + 2000 / 200.0, within(0.1));
    assertThat(result.epochSeconds().get(1)).isCloseTo(2, within(0.1));
  }

  @Test
  void a_policy_that_waits_for_each_read_has_its_latency_in_full() {
    String[] far = {"storage.latency: 10ms", "storage.rate: 1GB", "storage.depth: 16"};
    String[] serial = {"sample-order.memory: 1MiB", "sample-order.ahead: 0"};
    String[] all = {far[0], far[1], far[2], serial[0], serial[1]};
    assertThat(run("sample-order", far).seconds()).isCloseTo(20_000 * 0.0101 / 16, within(0.3));
    assertThat(run("sample-order", all).seconds()).isCloseTo(20_000 * 0.0101, within(3.0));
  }

  @Test
  void nodes_share_what_the_store_gives_to_all() {
    String[] shared = {"storage.total: 100MB", "nodes: 4"};
    String[] own = {"storage.rate: 100MB", "nodes: 4"};
    assertThat(run("redirect", shared).seconds()).isCloseTo(20, within(0.6));
    assertThat(run("redirect", own).seconds()).isCloseTo(5, within(0.3));
  }

  @Test
  void a_barrier_makes_all_wait_for_the_slowest() {
    String[] uneven = {
      "nodes: 4", "work.compute-rate: 100MB", "sample-bytes: lognormal 100KB 200KB"
    };
    String text = PLAIN.replace("sample-bytes: fixed 100KB\n", "") + String.join("\n", uneven);
    Scenario apart = Scenario.parse(text + "\nwork.barrier: false", "test");
    Scenario together = Scenario.parse(text, "test");
    double alone = new Simulation(apart).run().getFirst().seconds();
    double all = new Simulation(together).run().getFirst().seconds();
    assertThat(all).isGreaterThan(1.1 * alone);
  }
}
