package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.gristway.plan.Caching;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Fetch;
import org.gristway.plan.PlanStep.Source;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Tail;
import org.gristway.plan.TestLayout;
import org.gristway.plan.World;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

@Tag("java")
class ClairvoyantNextUsePolicyTest extends StretchPolicyContract {

  private static final long SEED = Seeds.of("ClairvoyantNextUsePolicyTest");

  @Override
  ReadPolicy policy() {
    return new ClairvoyantNextUsePolicy();
  }

  @Test
  void a_rank_has_as_much_of_its_own_as_belady_allows() {
    for (int i = 0; i < 100; i++) {
      Random random = new Random(SEED + i);
      int epochs = 1 + random.nextInt(12);
      int ranks = 1 + random.nextInt(6);
      TestLayout layout = Layouts.fixed(1 + random.nextInt(300), 4096);
      long memory = (4 + random.nextInt(200)) * 4096L;
      Caching caching = new Caching(0, epochs, Caching.Rates.USUAL);
      int batch = 1 + random.nextInt(20);
      PlanSettings settings =
          new PlanSettings(policy().name(), batch, memory, 4096, Tail.SHORT).withCaching(caching);
      PlanInputs inputs =
          PlanInputs.of(layout, random.nextLong(), new World(ranks, ranks, 0), settings);
      int room = (int) (Staging.of(inputs).cacheBytes() / 4096);
      for (int rank = 0; rank < ranks; rank++) {
        assertThat(fromOwn(inputs, epochs, rank))
            .as("rank %d of %s in %d epochs", rank, inputs.world(), epochs)
            .isEqualTo(byBelady(asked(inputs, epochs, rank), room));
      }
    }
  }

  private long fromOwn(PlanInputs inputs, int epochs, int rank) {
    ReadPolicy policy = policy();
    long own = 0;
    for (long epoch = 0; epoch < epochs; epoch++) {
      List<PlanStep> lane = Pulled.all(policy.plan(inputs, epoch).lane(rank, epoch == 0));
      own +=
          Pulled.of(Fetch.class, lane).stream()
              .filter(fetch -> fetch.source().peer() == Source.HERE)
              .count();
    }
    return own;
  }

  private static List<Long> asked(PlanInputs inputs, int epochs, int rank) {
    List<Long> asked = new ArrayList<>();
    for (long epoch = 0; epoch < epochs; epoch++) {
      PlanInputs.Requests requests = inputs.requests(epoch);
      for (long step = 0; step < inputs.shares().steps(); step++) {
        for (int i = 0; i < inputs.shares().fresh(rank, step); i++) {
          asked.add(requests.at(inputs.shares().firstRequest(rank, step) + i));
        }
      }
    }
    return asked;
  }

  /** As it is told in books: with no room left, what is asked for again last is dropped. */
  private static long byBelady(List<Long> asked, int room) {
    Map<Long, Integer> kept = new HashMap<>(); // sample, when it is asked for again
    long served = 0;
    for (int i = 0; i < asked.size(); i++) {
      Long sample = asked.get(i);
      served += kept.remove(sample) != null ? 1 : 0;
      int next = asked.subList(i + 1, asked.size()).indexOf(sample);
      if (next >= 0) {
        kept.put(sample, i + 1 + next);
      }
      if (kept.size() > room) {
        kept.values().remove(Collections.max(kept.values()));
      }
    }
    return served;
  }

  /** Many ranks and epochs take their time. */
  static Stream<Arguments> parts() {
    return Stream.of(
            arguments(1, 10, 0.25, 22.5, 22.5, 22.5, 22.5),
            arguments(4, 10, 0.10, 14.2, 36.0, 28.5, 35.8),
            arguments(4, 10, 0.25, 22.5, 90.0, 46.3, 70.0),
            arguments(4, 10, 0.50, 49.3, 90.0, 58.9, 85.8),
            arguments(4, 30, 0.25, 24.2, 96.7, 52.9, 76.3),
            arguments(16, 30, 0.05, 5.9, 77.4, 25.0, 57.7),
            arguments(16, 30, 0.25, 33.4, 96.7, 47.1, 93.9))
        .limit(Thorough.count(4, 7));
  }

  /** As {@code docs/policies/clairvoyant-next-use.md} tells: parts of all accesses, in percent. */
  @ParameterizedTest
  @MethodSource("parts")
  void more_comes_from_the_own_cache_and_less_from_any(
      int ranks,
      int epochs,
      double kept,
      double byWorth,
      double byWorthOfAll,
      double byNextUse,
      double byNextUseOfAll) {
    ReadPolicy worth = new ClairvoyantPolicy();
    ReadPolicy nextUse = policy();
    Served one = Served.in(worth, inputs(worth, ranks, epochs, kept), epochs);
    Served other = Served.in(nextUse, inputs(nextUse, ranks, epochs, kept), epochs);
    assertThat(100 * one.own()).isCloseTo(byWorth, within(0.1));
    assertThat(100 * (one.own() + one.others())).isCloseTo(byWorthOfAll, within(0.1));
    assertThat(100 * other.own()).isCloseTo(byNextUse, within(0.1));
    assertThat(100 * (other.own() + other.others())).isCloseTo(byNextUseOfAll, within(0.1));
    assertThat(other.own()).isGreaterThanOrEqualTo(one.own());
    assertThat(other.store()).isGreaterThanOrEqualTo(one.store());
  }

  @Test
  void memory_is_full_and_never_more_where_many_accesses_share_a_slot() {
    TestLayout layout = Layouts.formula("uneven", SAMPLES, i -> 1 + i * 7919L % 8000);
    for (int ranks : new int[] {1, 3}) {
      long memory = layout.bytes() / 3 / ranks;
      Caching caching = new Caching(memory / 4, 5, Caching.Rates.USUAL);
      PlanSettings settings =
          new PlanSettings(policy().name(), 50, memory, 8192, Tail.SHORT).withCaching(caching);
      PlanInputs inputs = PlanInputs.of(layout, SEED, new World(ranks, ranks, 0), settings);
      Caches caches = replayed(policy(), inputs, 5);
      long forSamples = Staging.of(inputs).cacheBytes();
      for (int rank = 0; rank < ranks; rank++) {
        assertThat((double) caches.peak(rank, Caching.MEMORY) / forSamples).isGreaterThan(0.99);
        assertThat((double) caches.peak(rank, Caching.DISK) / caching.diskBytes())
            .isGreaterThan(0.99);
      }
    }
  }
}
