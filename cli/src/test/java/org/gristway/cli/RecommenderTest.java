package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.gristway.Progress;
import org.gristway.plan.World;
import org.gristway.simulator.CostModel.Work;
import org.gristway.simulator.Described;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("java")
class RecommenderTest {

  private static final double NEVER = Double.POSITIVE_INFINITY;
  private static final long MIB = 1 << 20;

  /** 20,000 samples of 100 KB: 2 GB. */
  private static final Described LARGE_SAMPLES =
      new Described(20_000, Described.Kind.FIXED, 100_000, 0, 1);

  private static Recommendation recommend(
      Described dataset,
      ProbedStorage storage,
      double step,
      long memory,
      World world,
      Optional<String> policy) {
    Recommender.Asked asked =
        new Recommender.Asked(
            policy,
            dataset.layout(1),
            Math.round(dataset.samples() * dataset.mean()),
            256,
            world,
            memory,
            List.of(ExtentSize.AUTO, storage.result().saturatingBytes()),
            0,
            ProbeCosts.of(storage.result(), new Work(NEVER, NEVER, step, true)));
    Recommender recommender = new Recommender(asked, Progress.NONE);
    List<Recommendation.Advised> advised = new ArrayList<>();
    for (Candidate each : recommender.recommend()) {
      advised.add(Recommendation.Advised.of(each, recommender.plan(each), Progress.NONE));
    }
    return new Recommendation(
        asked,
        recommender.samplesTried(),
        advised.getFirst(),
        advised.size() > 1 ? advised.get(1) : null);
  }

  private static Recommendation recommend(
      Described dataset, ProbedStorage storage, double step, long memory) {
    return recommend(dataset, storage, step, memory, World.of(1), Optional.empty());
  }

  private static Candidate second(Recommendation recommendation) {
    return Objects.requireNonNull(recommendation.runnerUp()).settings();
  }

  @Test
  void fast_storage_gives_a_full_shuffle_in_little_memory() {
    Recommendation given = recommend(LARGE_SAMPLES, ProbedStorage.FAST, 0.1, 4096 * MIB);
    assertThat(given.best().settings().policy()).isEqualTo("sample-order");
    assertThat(given.best().settings().memory()).isEqualTo(4 * MIB);
    assertThat(given.best().settings().removesStall()).isTrue();
    assertThat(given.best().mateRatio()).isCloseTo(1, within(0.1));
    assertThat(given.bound()).isNull();
    assertThat(given.reason()).contains("a full shuffle", "20,000 reads");
    assertThat(second(given).policy()).isEqualTo("redirect");
  }

  /** 2,560 samples a second: more than requests, and half of the bytes. */
  @Test
  void few_requests_a_second_ask_for_extents_and_memory_enough_to_mix() {
    ProbedStorage storage = new ProbedStorage(500e-6, 500e6, 1_500);
    Recommendation given = recommend(LARGE_SAMPLES, storage, 0.1, 4096 * MIB);
    Candidate best = given.best().settings();
    assertThat(best.policy()).isEqualTo("redirect");
    assertThat(best.removesStall()).isTrue();
    assertThat(best.memory()).isEqualTo(128 * MIB); // the first power of two above 5 %
    assertThat(given.best().mateRatio()).isBetween(10.0, 20.0);
    assertThat(given.reason())
        .contains("128.0 MiB is the least memory tried", " times as often as by chance");
    // It would mix better, and takes sixteen times the memory: whoever has that may prefer it.
    assertThat(second(given).policy()).isEqualTo("unbounded");
    assertThat(given.whySecond()).contains("removes the stall too", "1.0 against");
  }

  @Test
  void storage_that_is_too_slow_is_said_to_bound_it() {
    Recommendation given = recommend(LARGE_SAMPLES, ProbedStorage.DISK, 0.05, 1024 * MIB);
    assertThat(given.best().settings().removesStall()).isFalse();
    assertThat(given.bound()).isEqualTo(Recommendation.Bound.BYTES);
    // 512 MB a second are wanted, and 180 come.
    assertThat(given.best().settings().stallShare()).isCloseTo(1 - 180.0 / 512, within(0.05));
    assertThat(given.reason())
        .contains(
            "Nothing that was tried removes the stall", "The storage bounds it: it gives 171");
  }

  @Test
  void on_several_nodes_a_share_on_each_is_said_to_be_enough() {
    World world = new World(4, 4, 0);
    Recommendation given =
        recommend(LARGE_SAMPLES, ProbedStorage.DISK, 0.05, 256 * MIB, world, Optional.empty());
    assertThat(given.bound()).isEqualTo(Recommendation.Bound.BYTES);
    assertThat(given.reason())
        .contains(
            "for the whole dataset (1.9 GiB) on each node would end that, or one for a node's")
        .endsWith(
            "share of it (476.8 MiB), with 'locality' or 'clairvoyant' and a network that is faster.");
    assertThat(recommend(LARGE_SAMPLES, ProbedStorage.DISK, 0.05, 256 * MIB).reason())
        .endsWith("only a memory for the whole dataset (1.9 GiB) would end that.");
  }

  @Test
  void a_dataset_that_fits_is_held_where_the_storage_is_too_slow() {
    Recommendation given = recommend(LARGE_SAMPLES, ProbedStorage.DISK, 0.05, 4096 * MIB);
    assertThat(given.best().settings().policy()).isEqualTo("unbounded");
    assertThat(given.best().settings().memory()).isBetween(1907 * MIB, 2300 * MIB);
    assertThat(given.best().settings().firstEpochStall()).isCloseTo(2000 / 180.0, within(1.0));
    assertThat(given.reason()).contains("all samples are in memory");
    assertThat(second(given).removesStall()).isFalse();
    assertThat(given.whySecond()).contains("It would wait 6");
  }

  @Test
  void a_dataset_that_fits_is_not_held_where_less_memory_does() {
    Recommendation given = recommend(LARGE_SAMPLES, ProbedStorage.DISK, 1, 4096 * MIB);
    assertThat(given.best().settings().policy()).isEqualTo("redirect");
    assertThat(given.best().settings().memory()).isEqualTo(128 * MIB);
    assertThat(second(given).policy()).isEqualTo("unbounded");
  }

  @Test
  void with_little_memory_all_of_it_goes_into_mixing() {
    Recommendation given = recommend(LARGE_SAMPLES, ProbedStorage.DISK, 1, 50 * MIB);
    assertThat(given.best().settings().policy()).isEqualTo("redirect");
    assertThat(given.best().settings().memory()).isEqualTo(50 * MIB);
    assertThat(given.reason()).contains("it holds 2.6 %, and not the 5.0 %");
    assertThat(second(given).policy()).isEqualTo("redirect");
    assertThat(second(given).memory()).isLessThan(50 * MIB);
    assertThat(second(given).removesStall()).isTrue();
  }

  @ParameterizedTest
  @CsvSource({"redirect, MEMORY", "sample-order, REQUESTS"})
  void what_bounds_the_only_policy_that_is_asked_for_is_said(String policy, String bound) {
    // 128 MB a second: 1,280 samples, or a few extents at once where each takes 20 ms.
    boolean redirect = policy.equals("redirect");
    Recommendation given =
        recommend(
            LARGE_SAMPLES,
            new ProbedStorage(redirect ? 20e-3 : 500e-6, 500e6, 1_000),
            0.2,
            redirect ? 512 << 10 : 1024 * MIB,
            World.of(1),
            Optional.of(policy));
    assertThat(given.best().settings().policy()).isEqualTo(policy);
    assertThat(given.bound()).isEqualTo(Recommendation.Bound.valueOf(bound));
    assertThat(given.reason()).contains(redirect ? "The memory bounds it" : " in reads of 1");
  }

  @Test
  void chunk_shuffle_is_tried_where_nothing_else_does() {
    Recommendation given = recommend(LARGE_SAMPLES, ProbedStorage.CLOUD, 0.05, 1024 * MIB);
    assertThat(given.best().settings().policy()).isEqualTo("redirect");
    assertThat(second(given).policy()).isEqualTo("chunk-shuffle");
  }

  @Test
  void a_large_dataset_is_tried_in_part() {
    Described small = new Described(150_000, Described.Kind.NORMAL, 10_000, 2_000, 1);
    Described large = new Described(1_500_000, Described.Kind.NORMAL, 10_000, 2_000, 1);
    // 80 MB a second are wanted, and 50 come, whatever the size.
    ProbedStorage storage = new ProbedStorage(1e-3, 50e6, 1_000);
    double step = 256 * 10_000 / 80e6;
    Recommendation ofSmall = recommend(small, storage, step, 100 * MIB);
    Recommendation ofLarge = recommend(large, storage, step, 1000 * MIB);
    assertThat(ofSmall.samplesTried()).isEqualTo(150_000);
    assertThat(ofLarge.samplesTried()).isBetween(200_000L, 230_000L);
    for (Recommendation each : List.of(ofSmall, ofLarge)) {
      assertThat(each.best().settings().stallShare()).isCloseTo(1 - 50 / 80.0, within(0.03));
    }
  }

  /** Tiny samples are tried several at a time: 80 MB are wanted, and 500 come. */
  @Test
  void tiny_samples_do_not_ask_for_more_memory_than_others() {
    Described tiny = new Described(5_000_000, Described.Kind.FIXED, 300, 0, 1);
    Described usual = new Described(15_000, Described.Kind.FIXED, 100_000, 0, 1);
    for (Described dataset : List.of(tiny, usual)) {
      double step = 256 * dataset.mean() / 80e6;
      Candidate best =
          recommend(dataset, new ProbedStorage(5e-3, 500e6, 600), step, 2048 * MIB)
              .best()
              .settings();
      assertThat(best.policy()).isEqualTo("redirect");
      assertThat(best.memory()).isEqualTo(128 * MIB); // the first power of two above 5 %
      assertThat(best.stallShare()).isLessThan(0.01);
    }
  }

  @Test
  void a_trainer_that_is_faster_than_the_loader_is_told_so() {
    // 256 samples take the loader 256 us, and a step 100.
    Described tiny = new Described(50_000, Described.Kind.FIXED, 1_000, 0, 1);
    Recommendation given = recommend(tiny, ProbedStorage.FAST, 100e-6, 4096 * MIB);
    assertThat(given.bound()).isEqualTo(Recommendation.Bound.LOADER);
    assertThat(given.reason())
        .contains("The loader bounds it", "256 samples")
        .doesNotContain("NaN");
  }

  @Test
  void many_ranks_can_share_few_tiny_samples() {
    Described few = new Described(1_000, Described.Kind.FIXED, 100, 0, 1);
    Recommendation given =
        recommend(few, ProbedStorage.FAST, 0.1, 1024 * MIB, World.of(32), Optional.empty());
    assertThat(given.samplesTried()).isEqualTo(1_000);
  }

  @Test
  void what_fits_is_tried_whatever_is_taken_for_one_sample() {
    Described tiny = new Described(500_000, Described.Kind.FIXED, 100, 0, 1);
    Recommendation given =
        recommend(tiny, ProbedStorage.DISK, 0.1, 60 * MIB, World.of(1), Optional.of("unbounded"));
    assertThat(given.best().settings().policy()).isEqualTo("unbounded");
  }

  @Test
  void nodes_have_storage_and_memory_of_their_own() {
    World world = new World(8, 4, 0);
    Recommendation given =
        recommend(LARGE_SAMPLES, ProbedStorage.DISK, 1, 1024 * MIB, world, Optional.empty());
    // Two ranks on a node take 51 MB a second, and 5 % of the dataset is in all four memories.
    assertThat(given.asked().bytesWanted()).isCloseTo(51.2e6, within(1e3));
    assertThat(given.best().settings().policy()).isEqualTo("redirect");
    assertThat(given.best().settings().memory()).isEqualTo(32 * MIB);
  }
}
