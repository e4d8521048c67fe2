package org.gristway.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import java.util.List;
import java.util.Locale;
import org.gristway.Failure;
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
      policies: perfect sample-order staging chunk-shuffle redirect redirect-position unbounded clairvoyant clairvoyant-next-use locality
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

  @ParameterizedTest
  @CsvSource({"clairvoyant", "clairvoyant-next-use", "locality"})
  void what_is_kept_counts_against_the_memory(String policy) {
    Simulated result = run(policy, "nodes: 4", "epochs: 5");
    assertThat(result.peakResidentBytes()).isBetween(190_000_000L, 200_000_000L);
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
  void storage_may_give_less_to_few_requests_at_once() {
    String[] disk = {"storage.rate: 100MB", "storage.by-depth: 1=0.25 16=1", "storage.page: 1"};
    String[] waits = {
      disk[0], disk[1], disk[2], "sample-order.memory: 1MiB", "sample-order.ahead: 0"
    };
    assertThat(run("redirect", disk).seconds()).isCloseTo(20, within(0.6));
    // Two frames of 1 MiB are all that it reads at once.
    assertThat(run("sample-order", waits).seconds()).isGreaterThan(40);
  }

  @Test
  void processors_that_read_have_the_less_time_to_deliver() {
    // 2 GB at 100 MB a processor, and as many again to deliver: 40 s of work for two processors.
    String[] reading = {"processors: 2", "storage.per-processor: 100MB", "storage.page: 1"};
    String[] both = {reading[0], reading[1], reading[2], "memory-rate: 100MB"};
    assertThat(run("redirect", reading).seconds()).isCloseTo(10, within(0.3));
    // The first second is for the extents that fill the memory.
    assertThat(run("redirect", both).seconds()).isCloseTo(21, within(0.6));
    // One rank copies with one processor, however many there are.
    assertThat(run("redirect", "processors: 8", both[1], both[2], both[3]).seconds())
        .isCloseTo(20, within(0.6));
  }

  @Test
  void what_stays_in_memory_is_copied_once() {
    String[] machine = {"unbounded.memory: 4GB", "sample-seconds: 100us", "memory-rate: 200MB"};
    Simulated result = run("unbounded", "epochs: 2", machine[0], machine[1], machine[2]);
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
  void reads_that_are_waited_for_get_no_more_than_the_store_has() {
    // Each sample is larger than a frame, so that it is read when it is wanted.
    String[] far = {
      "nodes: 4",
      "extent: 64KiB",
      "storage.page: 1",
      "storage.stream: 500MB",
      "storage.total: 100MB"
    };
    assertThat(run("redirect", far).seconds()).isCloseTo(20, within(0.6));
    assertThat(run("sample-order", far).seconds()).isCloseTo(20, within(0.6));
  }

  @Test
  void one_thread_alone_gets_its_own_rate_of_a_store_that_many_share() {
    String[] store = {"nodes: 4", "memory: 1GB", "storage.total: 400MB", "storage.page: 1"};
    String work = "work.preparation-rate: 1600MB"; // of 16 threads
    Scenario scenario =
        Scenario.parse(
            PLAIN
                    .replace("memory: 200MB\n", "")
                    .replace("policies: ", "policies: parallel-staging ")
                + String.join("\n", store)
                + "\n"
                + work,
            "test");
    Simulated result =
        new Simulation(scenario.withPolicies(List.of("parallel-staging"))).run().getFirst();
    // 500 MB a node, read at 100 MB/s and prepared by one of 16 threads, before training begins.
    assertThat(result.seconds()).isCloseTo(5 + 5, within(0.5));
  }

  @Test
  void which_samples_are_cached_has_nothing_to_do_with_their_size() {
    String text =
        PLAIN
            .replace("fixed 100KB", "lognormal 100KB 200KB")
            .replace("policies: ", "policies: deepio-ordered ");
    Scenario scenario = Scenario.parse(text, "test").withPolicies(List.of("deepio-ordered"));
    Simulated result = new Simulation(scenario).run().getFirst();
    double all = scenario.dataset().layout(scenario.seed()).bytes();
    // What does not fit the memory is read when it is wanted, and the rest before.
    assertThat(result.storageBytes() / all).isCloseTo(1, within(0.03));
  }

  @Test
  void a_curve_is_level_from_and_to_what_is_unlimited() {
    Curve curve = Values.curve("x", "1=unlimited 4=100 8=unlimited");
    assertThat(curve.at(2)).isInfinite();
    assertThat(curve.at(4)).isEqualTo(100);
    assertThat(curve.at(6)).isEqualTo(100);
    assertThat(curve.at(9)).isInfinite();
  }

  @ParameterizedTest
  @CsvSource(
      quoteCharacter = '"',
      value = {
        "storage.total: 1=0, storage.total must be more than 0",
        "sample-bytes: fixed unlimited, sample-bytes",
        "policies: stagin, of the literature",
        "policies: staging perfect staging, 'staging' is there twice",
        "clairvoyant.preload: true, clairvoyant.preload: only 'locality'",
        "staging.preload: true, staging.preload: only 'locality'",
        "locality.by-frequency: true, locality.by-frequency: only 'clairvoyant'",
        "staging.by-frequency: true, staging.by-frequency: only 'clairvoyant'",
        "seed: 1.5, is not a whole number",
      })
  void what_cannot_be_meant_is_refused_by_its_key(String line, String complaint) {
    String key = line.substring(0, line.indexOf(':'));
    String rest = PLAIN.replaceAll("(?m)^" + key + ":.*\\n", "");
    assertThatThrownBy(() -> Scenario.parse(rest + line, "test"))
        .isInstanceOf(Failure.class)
        .hasMessageContaining(complaint);
  }

  @Test
  void seeds_are_exact_and_may_be_negative() {
    for (long seed : new long[] {9007199254740993L, -5}) {
      assertThat(Scenario.parse(PLAIN + "seed: " + seed, "test").seed()).isEqualTo(seed);
    }
  }

  @Test
  void numbers_are_written_as_they_are_read_in_any_language() {
    Locale before = Locale.getDefault();
    Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
    try {
      assertThat(Scenario.parse(PLAIN, "test").epochs()).isEqualTo(1);
      assertThat(Values.number(3)).isEqualTo("3");
      assertThat(Values.number(2e6)).isEqualTo("2MB");
    } finally {
      Locale.setDefault(before);
    }
  }

  @Test
  void an_extent_that_is_larger_than_a_frame_counts_in_full() {
    String text = PLAIN.replace("fixed 100KB", "fixed 10MB").replace("20000", "20");
    Scenario scenario =
        Scenario.parse(text + "unbounded.memory: 1GB", "test").withPolicies(List.of("unbounded"));
    assertThat(new Simulation(scenario).run().getFirst().peakResidentBytes())
        .isBetween(200_000_000L, 201_000_000L);
  }

  /** 64 nodes that share a store, a network and their steps, with samples of uneven sizes. */
  private static final String MANY =
      """
      name: many
      samples: 200000
      sample-bytes: lognormal 100KB 80KB
      epochs: 2
      batch: 20
      nodes: 64
      memory: 200MB
      storage.latency: 1ms
      storage.total: 1=500MB 64=4GB
      network.rate: 1GB
      network.bisection: 20GB
      memory-rate: 10GB
      disk-rate: 2GB
      work.preparation-rate: 400MB
      work.compute-rate: 100MB
      policies: perfect staging sample-order redirect chunk-shuffle clairvoyant locality
      """;

  /** What 16 nodes stand for 64 with: within 4 % of the time, and 2 % of the bytes. */
  @ParameterizedTest
  @CsvSource({
    "perfect",
    "staging",
    "sample-order",
    "redirect",
    "chunk-shuffle",
    "clairvoyant",
    "locality"
  })
  void some_nodes_stand_for_all(String policy) {
    List<String> only = List.of(policy);
    Scenario scenario = Scenario.parse(MANY, "test").withPolicies(only);
    Scenario part = Scenario.parse(MANY + "simulated: 16\n", "test").withPolicies(only);
    Simulated all = new Simulation(scenario).run().getFirst();
    Simulated some = new Simulation(part).run().getFirst();
    assertThat(some.seconds()).isCloseTo(all.seconds(), withinPercentage(4));
    assertThat((double) some.storageBytes()).isCloseTo(all.storageBytes(), withinPercentage(2));
    // Relative to the bytes of the dataset where next to nothing moves.
    double tolerance = Math.max(0.1 * all.networkBytes(), 0.001 * all.storageBytes());
    assertThat((double) some.networkBytes()).isCloseTo(all.networkBytes(), within(tolerance));
  }

  @Test
  void what_was_loaded_before_training_is_in_memory() {
    List<String> only = List.of("locality");
    Scenario filled = Scenario.parse(MANY + "locality.preload: true\n", "test").withPolicies(only);
    Scenario empty = Scenario.parse(MANY, "test").withPolicies(only);
    long before = new Simulation(filled).run().getFirst().timeline().getFirst().residentBytes();
    long inTime = new Simulation(empty).run().getFirst().timeline().getFirst().residentBytes();
    assertThat(before).isBetween(140_000_000L, 200_000_000L);
    assertThat(inTime).isLessThan(60_000_000L);
  }

  @Test
  void a_run_is_told_by_what_its_first_node_did_and_by_how_even_all_are() {
    Scenario scenario = Scenario.parse(MANY, "test").withPolicies(List.of("redirect"));
    Simulated result = new Simulation(scenario).run().getFirst();
    assertThat(result.timeline()).hasSizeBetween(200, 512);
    Simulated.Moment before = result.timeline().getFirst();
    for (Simulated.Moment moment : result.timeline()) {
      assertThat(moment.seconds()).isGreaterThanOrEqualTo(before.seconds());
      assertThat(moment.storageBytes()).isGreaterThanOrEqualTo(before.storageBytes());
      assertThat(moment.stallSeconds()).isGreaterThanOrEqualTo(before.stallSeconds());
      assertThat(moment.residentBytes()).isBetween(0L, result.peakResidentBytes());
      before = moment;
    }
    assertThat(before.seconds()).isCloseTo(result.seconds(), withinPercentage(2));
    Simulated.Balance storage = result.nodes().storage();
    assertThat(storage.mean() * 64).isCloseTo(result.storageBytes(), withinPercentage(0.1));
    assertThat(storage.least()).isLessThan(storage.mean());
    assertThat(storage.mostToMean()).isBetween(1.0, 1.2);
  }

  @Test
  void a_policy_that_holds_everything_needs_the_memory_and_reads_once() {
    Scenario small =
        Scenario.parse(PLAIN + "epochs: 3\n", "test").withPolicies(List.of("unbounded"));
    Simulated refused = new Simulation(small).run().getFirst();
    assertThat(refused.reason()).contains("holds all of the dataset", "200000000");
    Simulated ran = new Simulation(small.withMemoryTimes(20)).run().getFirst();
    assertThat(ran.reason()).isEmpty();
    assertThat(ran.storageBytes()).isBetween(2_000_000_000L, 2_030_000_000L);
    assertThat(ran.peakResidentBytes()).isGreaterThanOrEqualTo(2_000_000_000L);
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
