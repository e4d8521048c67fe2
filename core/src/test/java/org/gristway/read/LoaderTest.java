package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.Tail;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Whole epochs of a real dataset with names and sizes of all kinds, by every policy. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderTest {

  static final List<String> POLICIES = LoaderContract.POLICIES;

  private static final int EPOCHS = 3;

  @TempDir static Path folder;
  private static Originals originals;

  @BeforeAll
  static void pack() {
    Random random = new Random(Seeds.of("LoaderTest"));
    originals = Originals.of(Packs.pack(Trees.random(random, 200), folder.resolve("dataset")));
  }

  static Stream<Arguments> everyCase() {
    return POLICIES.stream()
        .flatMap(policy -> Stream.of(Tail.values()).map(tail -> List.of(policy, tail)))
        .flatMap(
            each ->
                IntStream.rangeClosed(1, 3)
                    .mapToObj(ranks -> arguments(each.get(0), each.get(1), ranks)));
  }

  @ParameterizedTest
  @MethodSource("everyCase")
  void each_sample_comes_once_per_epoch_as_planned_within_the_budget(
      String policy, Tail tail, int ranks) {
    Random random = new Random(Seeds.of("each_sample_comes_once_per_epoch"));
    for (int i = 0; i < Thorough.count(1, 30); i++) {
      LoaderContract.assertKept(
          originals, LoaderContract.anyOptions(random, policy, tail, ranks), EPOCHS);
    }
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void the_number_of_threads_does_not_change_the_order(String policy) {
    Random random = new Random(Seeds.of("the_number_of_threads_does_not_change_the_order"));
    LoaderOptions options =
        LoaderContract.anyOptions(random, policy, Tail.SHORT, 2).withEpochs(2).withThreads(1);
    List<Received.Place> order = readAll(options);
    // Few more than one, many, and any number between them.
    int[] numbers =
        Thorough.on()
            ? IntStream.rangeClosed(2, 16).toArray()
            : new int[] {2, 3 + random.nextInt(13), 16};
    for (int threads : numbers) {
      assertThat(readAll(options.withThreads(threads))).isEqualTo(order);
    }
  }

  private static List<Received.Place> readAll(LoaderOptions options) {
    Received received = new Received(originals);
    try (Loader loader = Loader.open(originals.path(), options)) {
      for (long epoch = 0; epoch < options.epochs(); epoch++) {
        received.addEpoch(loader);
      }
    }
    return received.inOrder();
  }

  /**
   * Also with {@code unbounded}, where lanes deliver from what the others have loaded: all load
   * their share as soon as the loader is open, whether anyone takes their batches or not.
   */
  @ParameterizedTest
  @FieldSource("POLICIES")
  void no_rank_waits_for_another(String policy) throws Exception {
    Random random = new Random(Seeds.of("no_rank_waits_for_another"));
    LoaderOptions options =
        LoaderContract.anyOptions(random, policy, Tail.SHORT, 3).withEpochs(EPOCHS);
    List<Received.Place> order = readAll(options);

    Received oneAfterTheOther = new Received(originals);
    try (Loader loader = Loader.open(originals.path(), options)) {
      for (int rank = 2; rank >= 0; rank--) {
        for (long epoch = 0; epoch < EPOCHS; epoch++) {
          loader.epoch(rank).forEach(oneAfterTheOther::add);
        }
      }
    }
    assertThat(oneAfterTheOther.inOrder()).isEqualTo(order);

    Received inTurn = new Received(originals);
    try (Loader loader = Loader.open(originals.path(), options)) {
      inTurn.addSteps(loader, oneAfterTheOther.batches(0));
    }
    assertThat(inTurn.inOrder()).isEqualTo(order);
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void ranks_may_be_read_by_a_thread_each(String policy) throws InterruptedException {
    Random random = new Random(Seeds.of("ranks_may_be_read_by_a_thread_each"));
    LoaderOptions options =
        LoaderContract.anyOptions(random, policy, Tail.PAD, 3).withEpochs(EPOCHS);
    List<Received> ofRanks = new ArrayList<>();
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    try (Loader loader = Loader.open(originals.path(), options)) {
      List<Thread> trainers = new ArrayList<>();
      for (int rank = 0; rank < 3; rank++) {
        int each = rank;
        Received received = new Received(originals);
        ofRanks.add(received);
        trainers.add(
            Thread.ofPlatform()
                .uncaughtExceptionHandler((_, thrown) -> failures.add(thrown))
                .start(
                    () -> {
                      for (int epoch = 0; epoch < EPOCHS; epoch++) {
                        for (Batch batch : loader.epoch(each)) {
                          received.add(batch);
                        }
                      }
                    }));
      }
      for (Thread trainer : trainers) {
        trainer.join();
      }
    }
    assertThat(failures).isEmpty();
    Received all = new Received(originals);
    ofRanks.forEach(each -> all.places().addAll(each.places()));
    assertThat(all.inOrder()).isEqualTo(readAll(options));
  }

  @Test
  void other_seeds_and_epochs_give_other_orders_and_the_same_seed_the_same() {
    LoaderOptions options =
        LoaderOptions.DEFAULT
            .withMemory(1 << 20)
            .withExtentBytes(16 << 10)
            .withBatchSize(7)
            .withEpochs(2);
    List<Received.Place> order = readAll(options);
    assertThat(readAll(options)).isEqualTo(order);
    assertThat(readAll(options.withSeed(1))).isNotEqualTo(order);
    assertThat(order.stream().map(Received.Place::sample).limit(originals.count()).toList())
        .isNotEqualTo(order.stream().map(Received.Place::sample).skip(originals.count()).toList());
  }

  @Test
  void a_dataset_that_is_appended_to_stays_the_version_that_was_opened() {
    Path path = Packs.pack(Trees.of("a", "1", "b", "22", "c", "333"), folder.resolve("grows"));
    Originals before = Originals.of(path);
    LoaderOptions options = LoaderOptions.DEFAULT.withBatchSize(2).withMemory(1 << 20);
    Received received = new Received(before);
    try (Loader loader = Loader.open(path, options)) {
      received.add(loader.next(0));
      Packs.append(Trees.write(Trees.of("d", "4444"), folder.resolve("more")), path);
      received.addEpoch(loader);
      received.assertEachOnce();
      received.addEpoch(loader);
      received.ofEpoch(1).assertEachOnce();
    }
    LoaderContract.assertKept(Originals.of(path), options, 2);
    try (Loader old = Loader.open(Dataset.open(path, 1), options, Beginning.NEW_RUN, line -> {})) {
      new Received(before).addEpoch(old).assertEachOnce();
    }
  }
}
