package org.gristway.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import java.util.List;
import java.util.Random;
import org.gristway.plan.SampleLayout;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Ranks that push to each other, in virtual time. */
@Tag("java")
class ExchangeSimulationTest {

  /** 20,000 samples of 100 KB: 2 GB, on two nodes with a tenth of it in their memories. */
  private static final String TWO =
      """
      name: two
      samples: 20000
      sample-bytes: fixed 100KB
      memory: 100MB
      batch: 50
      nodes: 2
      storage.page: 1
      policies: redirect chunk-shuffle sample-order
      """;

  private static final double BYTES = 20_000 * 100e3;

  private static Simulated run(String policy, String... lines) {
    return ran(Scenario.parse(TWO + String.join("\n", lines), "test"), policy);
  }

  private static Simulated ran(Scenario scenario, String policy) {
    Simulated result = new Simulation(scenario.withPolicies(List.of(policy))).run().getFirst();
    assertThat(result.reason()).isEmpty();
    return result;
  }

  @ParameterizedTest
  @CsvSource({"redirect", "chunk-shuffle"})
  void a_network_that_is_slower_than_all_else_decides(String policy) {
    Simulated all = run(policy, "exchange: 1", "network.bisection: 50MB");
    assertThat((double) all.networkBytes()).isCloseTo(BYTES / 2, withinPercentage(2));
    assertThat(all.seconds()).isCloseTo(all.networkBytes() / 50e6, withinPercentage(1));
    // The rest of it, whoever has got its samples waits for the other at the end of the step.
    assertThat(all.stallSeconds()).isBetween(0.7 * all.seconds(), all.seconds());
  }

  @Test
  void links_carry_each_way_what_goes_that_way() {
    // With a window that evens out what one batch draws of the other node and the next does not.
    Simulated all = run("redirect", "exchange: 1", "window: 32", "network.rate: 50MB");
    double mostOfOneLink = all.nodes().network().most();
    assertThat(all.seconds()).isCloseTo(mostOfOneLink / 50e6, withinPercentage(2));
    assertThat(all.nodes().network().least() + mostOfOneLink).isEqualTo(all.networkBytes());
  }

  @ParameterizedTest
  @CsvSource({"redirect", "chunk-shuffle"})
  void storage_that_is_slower_than_the_network_hides_it(String policy) {
    String[] store = {"storage.rate: 50MB", "network.rate: 1GB", "exchange: 0"};
    double alone = run(policy, store).seconds();
    store[2] = "exchange: 1";
    assertThat(run(policy, store).seconds()).isCloseTo(alone, withinPercentage(1));
  }

  @ParameterizedTest
  @CsvSource({"0.25, 2", "0.5, 4", "1, 4", "1, 20"})
  void the_share_decides_how_much_moves(double share, int nodes) {
    Scenario scenario = Scenario.parse(TWO + "exchange: " + share, "test").withNodes(nodes);
    Simulated result = ran(scenario, "redirect");
    assertThat(result.networkBytes() / BYTES).isCloseTo(share * (1 - 1.0 / nodes), within(0.01));
    assertThat(result.storageBytes()).isEqualTo((long) BYTES);
  }

  @Test
  void ranks_of_a_node_hand_over_memory() {
    String[] near = {
      "ranks-per-node: 2", "exchange: 1", "network.rate: 1", "network.latency: 1s", ""
    };
    Scenario one = Scenario.parse(TWO + String.join("\n", near), "test").withNodes(1);
    Simulated free = ran(one, "redirect");
    assertThat(free.networkBytes()).isZero();
    assertThat(free.seconds()).isZero();
    near[4] = "memory-rate: 100MB";
    Scenario copied = Scenario.parse(TWO + String.join("\n", near), "test").withNodes(1);
    // Half of the samples are copied twice, into a parcel and out of it; and in each step both wait
    // for the one that has more to copy.
    assertThat(ran(copied, "redirect").seconds())
        .isCloseTo(1.5 * BYTES / 2 / 100e6, withinPercentage(5));
  }

  /**
   * A step trains for 10 ms, what is pushed for it takes 8 ms on a link and 20 ms more to arrive,
   * and 20 ms pass until a rank is told that another has room. So 2w + 1 steps take 48 ms at least.
   */
  @Test
  void a_window_hides_what_would_be_waited_for() {
    String[] far = {
      "exchange: 1",
      "network.latency: 20ms",
      "network.rate: 312500KB",
      "work.compute-seconds: 10ms",
      "window: 1"
    };
    double narrow = run("redirect", far).seconds();
    far[4] = "window: 4";
    double wide = run("redirect", far).seconds();
    assertThat(narrow).isBetween(200 * 0.0155, 200 * 0.0175);
    assertThat(wide).isCloseTo(200 * 0.010, withinPercentage(3));
  }

  /** Being told of room takes 30 ms, and as long what is pushed then: 60 ms for 2w + 1 steps. */
  @ParameterizedTest
  @CsvSource({"1, 0.020", "2, 0.012", "4, 0.010", "16, 0.010"})
  void a_window_hides_that_ranks_tell_each_other_how_far_they_have_come(int window, double step) {
    String[] far = {
      "exchange: 1", "network.latency: 30ms", "work.compute-seconds: 10ms", "window: " + window
    };
    assertThat(run("redirect", far).seconds()).isCloseTo(200 * step, withinPercentage(5));
  }

  @Test
  void what_is_received_counts_beside_the_frames() {
    Simulated alone = run("redirect", "exchange: 0", "window: 9");
    Simulated mixed = run("redirect", "exchange: 1", "window: 9");
    double received = mixed.peakResidentBytes() - alone.peakResidentBytes();
    // Ten steps of 50 samples, of which half come from the other node.
    assertThat(received).isBetween(0.9 * 10 * 25 * 100e3, 1.3 * 10 * 25 * 100e3);
    long most =
        mixed.timeline().stream().mapToLong(Simulated.Moment::residentBytes).max().orElseThrow();
    assertThat(most).isBetween(alone.peakResidentBytes(), mixed.peakResidentBytes());
  }

  @Test
  void policies_that_cannot_exchange_are_as_without_it() {
    String[] machine = {"storage.rate: 50MB", "network.rate: 10MB", "exchange: 0"};
    Simulated without = run("sample-order", machine);
    machine[2] = "exchange: 1";
    assertThat(run("sample-order", machine)).isEqualTo(without);
  }

  @Test
  void every_node_is_simulated_where_ranks_exchange() {
    String text = TWO + "exchange: 1\nnetwork.bisection: 100MB\n";
    Simulated all = ran(Scenario.parse(text, "test").withNodes(8), "redirect");
    assertThat(ran(Scenario.parse(text + "simulated: 2\n", "test").withNodes(8), "redirect"))
        .isEqualTo(all);
  }

  /** Whatever is slow, and however far ahead is pushed, every rank comes to its end. */
  @Test
  void any_run_ends_and_takes_as_long_as_what_it_needs_most() {
    long seed = Seeds.of("ExchangeSimulationTest");
    for (int i = 0; i < 60; i++) {
      Random random = new Random(seed + i);
      int nodes = 1 + random.nextInt(6);
      int perNode = 1 + random.nextInt(3);
      int samples = 1000 + random.nextInt(3000);
      double store = 1e6 * (1 + random.nextInt(500));
      double network = 1e6 * (1 + random.nextInt(500));
      double share = random.nextInt(5) / 4.0;
      int epochs = 1 + random.nextInt(3);
      String text =
          String.join(
              "\n",
              "name: any",
              "samples: " + samples,
              "sample-bytes: lognormal 20KB 30KB",
              "memory: " + (perNode * (300 + random.nextInt(3000))) + "KB",
              "extent: 128KiB",
              "batch: " + (1 + random.nextInt(60)),
              "nodes: " + nodes,
              "ranks-per-node: " + perNode,
              "epochs: " + epochs,
              "ahead: " + random.nextInt(5),
              "exchange: " + share,
              "window: " + (1 + random.nextInt(6)),
              "seed: " + random.nextInt(100),
              "processors: " + (1 + random.nextInt(4)),
              "memory-rate: " + (1 + random.nextInt(100)) + "MB",
              "storage.rate: " + store,
              "storage.latency: " + random.nextInt(3) + "ms",
              "storage.page: 1",
              "network.rate: " + network,
              "network.latency: " + random.nextInt(3) + "ms",
              "work.compute-seconds: " + random.nextInt(3) + "ms",
              "work.barrier: " + random.nextBoolean(),
              "policies: redirect chunk-shuffle");
      Scenario scenario = Scenario.parse(text, "test");
      SampleLayout layout = scenario.dataset().layout(scenario.seed());
      double bytes = layout.bytes();
      // What is read straight into a batch goes before what waits, which is not the later for it:
      // samples that fill an extent, and the one that a rank may be given again in an epoch.
      double large = 0;
      double largest = 0;
      for (long sample = 0; sample < layout.sampleCount(); sample++) {
        double length = layout.length(sample);
        large += length > 128 << 10 ? length : 0;
        largest = Math.max(largest, length);
      }
      double straight = epochs * (large + perNode * largest);
      for (String policy : List.of("redirect", "chunk-shuffle")) {
        Simulated result = ran(scenario, policy);
        assertThat(result.epochSeconds()).as(text).hasSize(epochs);
        assertThat(result.seconds())
            .as(text)
            .isFinite()
            .isGreaterThan(0.99 * (result.nodes().storage().most() - straight) / store)
            .isGreaterThan(0.99 * result.nodes().network().most() / network);
        assertThat((double) result.storageBytes())
            .as(text)
            .isBetween(epochs * bytes, 1.2 * epochs * bytes);
        double moved = share * (1 - 1.0 / nodes) * epochs * bytes;
        // More where a rank has too few of its own left for what it does not exchange.
        double most = moved == 0 ? 0 : epochs * bytes;
        assertThat((double) result.networkBytes()).as(text).isBetween(0.5 * moved, most);
      }
    }
  }
}
