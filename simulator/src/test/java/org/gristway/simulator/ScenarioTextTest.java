package org.gristway.simulator;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import org.gristway.plan.Exchange;
import org.gristway.plan.policy.Policies;
import org.gristway.simulator.CostModel.Network;
import org.gristway.simulator.CostModel.Storage;
import org.gristway.simulator.CostModel.Work;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("java")
class ScenarioTextTest {

  private static final long SEED = Seeds.of("ScenarioTextTest");

  private static void assertReadAgain(Scenario scenario) {
    assertThat(Scenario.parse(scenario.text(), "test")).isEqualTo(scenario);
  }

  static List<String> scenarios() {
    return Scenarios.names();
  }

  @ParameterizedTest
  @MethodSource("scenarios")
  void every_scenario_that_comes_along_is_written_as_it_is_read(String name) {
    assertReadAgain(Scenarios.named(name));
    assertReadAgain(Scenarios.named(name).withNodes(3).withSimulated(2).withMemoryTimes(0.3));
  }

  @Test
  void only_bytes_are_written_in_units_of_bytes() {
    String text =
        Scenario.parse(
                Scenarios.text("imagenet-1k")
                    + """
                    storage.requests: 2000
                    storage.by-size: 4KiB=12MB 1MiB=500MB
                    storage.by-depth: 1=0.5 1000=1
                    processors: 1024
                    """,
                "test")
            .text();
    assertThat(text.lines())
        .contains(
            "storage.total-requests: 400000",
            "storage.requests: 2000",
            "storage.by-size: 4KiB=12MB 1MiB=500MB",
            "storage.by-depth: 1=0.5 1000=1",
            "processors: 1024",
            "memory: 20GB",
            "network.rate: 24GB");
  }

  @Test
  void any_scenario_is_written_as_it_is_read() {
    for (int i = 0; i < 1000; i++) {
      assertReadAgain(random(new Random(SEED + i)));
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 1, 1 << 20, 1_500_000, (1L << 53) + 1, Long.MAX_VALUE >> 8})
  void whole_numbers_are_exact(long value) {
    assertThat(Values.whole("x", Values.whole(value))).isEqualTo(value);
  }

  @ParameterizedTest
  @ValueSource(doubles = {0, 1e-6, 0.1, 3_000_000_000_000.0005, 1e300, 0x1p70})
  void numbers_are_exact(double value) {
    assertThat(Values.number("x", Values.number(value))).isEqualTo(value);
  }

  private static Scenario random(Random random) {
    int nodes = 1 + random.nextInt(100);
    long memory = random.nextLong(1L << 59);
    int ahead = random.nextInt(20);
    return new Scenario(
        "random " + random.nextInt(),
        random.nextBoolean() ? "" : "What it is:\n\nlines with 1 # and a key: value",
        dataset(random),
        1 + random.nextInt(100),
        1 + random.nextInt(1000),
        nodes,
        1 + random.nextInt(8),
        random.nextBoolean() ? Integer.MAX_VALUE : 1 + random.nextInt(nodes),
        memory,
        random.nextLong(1L << 50),
        random.nextLong(1L << 30),
        ahead,
        new Exchange(random.nextDouble(), 1 + random.nextInt(64)),
        random.nextLong(),
        new CostModel(
            storage(random),
            new Network(random.nextDouble(), rate(random), rate(random)),
            rate(random),
            random.nextDouble() / 1e6,
            rate(random),
            rate(random),
            new Work(rate(random), rate(random), random.nextDouble(), random.nextBoolean())),
        policies(random, memory, ahead));
  }

  private static Described dataset(Random random) {
    Described.Kind[] kinds = Described.Kind.values();
    Described.Kind kind = kinds[random.nextInt(kinds.length)];
    double deviation = kind == Described.Kind.FIXED ? 0 : 1e6 * random.nextDouble();
    long samples = 1000 + random.nextInt(1 << 30);
    double mean = 1 + random.nextInt(1 << 20) * (random.nextBoolean() ? 1 : 1000 / 7.0);
    return new Described(samples, kind, mean, deviation, 1 + random.nextInt(1000));
  }

  private static Storage storage(Random random) {
    return new Storage(
        random.nextDouble() / 1000,
        rate(random),
        rate(random),
        curve(random),
        curve(random),
        curve(random),
        curve(random),
        curve(random),
        rate(random),
        1 + random.nextInt(64),
        1 + random.nextInt(1 << 20));
  }

  private static double rate(Random random) {
    double[] rates = {
      Double.POSITIVE_INFINITY,
      1e6 * (1 + random.nextInt(30_000)),
      (1 << 10) * (1L + random.nextInt(1 << 20)),
      1e9 * (random.nextDouble() + 0.001)
    };
    return rates[random.nextInt(rates.length)];
  }

  private static Curve curve(Random random) {
    if (random.nextBoolean()) {
      return Curve.constant(rate(random));
    }
    NavigableMap<Double, Double> points = new TreeMap<>();
    int count = 1 + random.nextInt(5);
    for (int i = 0; i < count; i++) {
      points.put(random.nextInt(1 << 20) * (random.nextBoolean() ? 1 : 0.3), rate(random));
    }
    return new Curve(points);
  }

  private static List<Scenario.Tried> policies(Random random, long memory, int ahead) {
    List<String> names = new ArrayList<>(Policies.names());
    names.addAll(Baseline.labels());
    names.removeIf(_ -> random.nextInt(3) == 0);
    names.add("perfect");
    return names.stream()
        .distinct()
        .map(
            name ->
                new Scenario.Tried(
                    name,
                    random.nextBoolean() ? memory : random.nextLong(1L << 59),
                    random.nextBoolean() ? ahead : random.nextInt(20),
                    name.equals("locality") && random.nextBoolean(),
                    name.equals("clairvoyant") && random.nextBoolean()))
        .toList();
  }
}
