package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.gristway.Failure.Kind;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.ReadState;
import org.gristway.plan.SampleSet;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Loaders that begin somewhere in a run, for some of its ranks or samples. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderPlaceTest {

  static final List<String> POLICIES = LoaderContract.POLICIES;

  private static final int EPOCHS = 3;

  @TempDir static Path folder;
  private static Originals originals;

  @BeforeAll
  static void pack() {
    Random random = new Random(Seeds.of("LoaderPlaceTest"));
    originals = Originals.of(Packs.pack(Trees.random(random, 120), folder.resolve("dataset")));
  }

  private static LoaderOptions options(Random random, String policy, int ranks) {
    return LoaderContract.anyOptions(random, policy, Tail.SHORT, ranks)
        .withBatchSize(1 + random.nextInt(12))
        .withEpochs(EPOCHS);
  }

  private static Loader open(LoaderOptions options, Beginning beginning) {
    return Loader.open(Dataset.open(originals.path()), options, beginning, line -> {});
  }

  /** All that is left of a run. */
  private static List<Received.Place> rest(LoaderOptions options, Beginning beginning) {
    Received received = new Received(originals);
    try (Loader loader = open(options, beginning)) {
      for (long epoch = loader.firstEpoch(); epoch < EPOCHS; epoch++) {
        received.addEpoch(loader);
      }
    }
    return received.inOrder();
  }

  private static Beginning at(ReadState state, long epoch, long step) {
    return new Beginning(state, new Beginning.Place(epoch, step), null, 1);
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void from_any_place_on_the_run_is_what_it_would_have_been(String policy) {
    Random random = new Random(Seeds.of("from_any_place_on"));
    for (int i = 0; i < Thorough.count(4, 60); i++) {
      LoaderOptions options = options(random, policy, 1 + random.nextInt(3));
      List<Received.Place> whole = rest(options, Beginning.NEW_RUN);
      long steps = 1 + whole.stream().mapToLong(Received.Place::step).max().orElse(0);
      long epoch = random.nextInt(EPOCHS);
      long step = random.nextLong(steps + 1);
      assertThat(rest(options, at(null, epoch, step)))
          .as("%s from step %d of epoch %d", options, step, epoch)
          .isEqualTo(
              whole.stream()
                  .filter(p -> p.epoch() > epoch || (p.epoch() == epoch && p.step() >= step))
                  .toList());
    }
  }

  @Test
  void in_what_is_left_of_an_epoch_steps_count_from_where_it_was_gone_on_with() {
    Random random = new Random(Seeds.of("in_what_is_left_of_an_epoch"));
    LoaderOptions one = options(random, "redirect", 1).withBatchSize(7);
    ReadState state;
    try (Loader loader = open(one, Beginning.NEW_RUN)) {
      new Received(originals).addSteps(loader, 5);
      state = loader.state();
    }
    LoaderOptions two = one.withRanks(2).withMemory(2 * one.memory());
    List<Received.Place> left = rest(two, Beginning.at(state));
    assertThat(rest(two, at(state, 0, 3)))
        .isEqualTo(left.stream().filter(p -> p.epoch() > 0 || p.step() >= 3).toList());
    assertThat(rest(two, at(state, 1, 2)))
        .isEqualTo(
            left.stream().filter(p -> p.epoch() > 1 || (p.epoch() == 1 && p.step() >= 2)).toList());
  }

  @Test
  void there_is_nothing_behind_the_last_step() {
    LoaderOptions options = LoaderOptions.DEFAULT.withMemory(1 << 20).withBatchSize(50);
    assertFails(
        Kind.WRONG_CALL, () -> open(options, at(null, 0, 4)), "no step 4 in epoch 0, which has 3");
    assertFails(Kind.WRONG_CALL, () -> open(options, at(null, -1, 0)), "epoch -1");
  }

  /** What several machines rely on: each reads its own ranks' share, and they fit together. */
  @ParameterizedTest
  @FieldSource("POLICIES")
  void ranks_apart_get_what_they_get_together(String policy) {
    Random random = new Random(Seeds.of("ranks_apart_get_what_they_get_together"));
    int ranks = 4;
    LoaderOptions together = options(random, policy, ranks);
    long perRank = together.memory() / ranks;
    for (int nodes : List.of(2, ranks)) {
      List<Received.Place> apart = new ArrayList<>();
      for (int node = 0; node < nodes; node++) {
        LoaderOptions there =
            together.withWorld(new World(ranks, nodes, node)).withMemory(perRank * (ranks / nodes));
        Received received = new Received(originals);
        try (Loader loader = open(there, Beginning.NEW_RUN)) {
          for (int rank = there.world().firstRank(); rank < (node + 1) * ranks / nodes; rank++) {
            for (Batch batch : loader.epoch(rank)) {
              received.add(batch);
            }
          }
        }
        apart.addAll(received.inOrder());
      }
      List<Received.Place> all =
          rest(together.withMemory(perRank * ranks), Beginning.NEW_RUN).stream()
              .filter(p -> p.epoch() == 0)
              .toList();
      assertThat(apart).as("%d nodes", nodes).containsExactlyInAnyOrderElementsOf(all);
    }
  }

  @Test
  void batches_of_several_steps_of_a_set_end_with_the_epoch() {
    LoaderOptions options = LoaderOptions.DEFAULT.withMemory(1 << 20).withBatchSize(1);
    SampleSet odd = SampleSet.where(originals.count(), sample -> sample % 2 == 1);
    Beginning beginning = new Beginning(null, null, odd, 0);
    try (Loader loader = open(options, beginning)) {
      loader.start(25);
      for (int epoch = 0; epoch < 2; epoch++) {
        List<Long> given = new ArrayList<>();
        for (int size : List.of(25, 25, 10)) {
          try (Batch batch = loader.next(0)) {
            assertThat(batch.size()).isEqualTo(size);
            assertThat(batch.epoch()).isEqualTo(epoch);
            for (int place = 0; place < size; place++) {
              originals.assertOwn(batch, place);
              given.add(batch.sample(place));
            }
          }
        }
        assertThat(given).doesNotHaveDuplicates().allMatch(odd::contains).hasSize(60);
      }
    }
  }

  @Test
  void batches_outlive_a_loader_that_is_retired() {
    LoaderOptions options = LoaderOptions.DEFAULT.withMemory(1 << 20).withBatchSize(10);
    Remains before = Remains.now();
    Loader loader = open(options, Beginning.NEW_RUN);
    Batch batch = loader.next(0);
    loader.retire();
    new Received(originals).add(batch); // checks every byte, and closes it
    before.assertNoMore();
  }

  @Test
  void a_loader_that_may_have_more_batches_open_has() {
    LoaderOptions options = LoaderOptions.DEFAULT.withMemory(1 << 20).withBatchSize(5);
    try (Loader loader = open(options, Beginning.NEW_RUN)) {
      loader.grow(10);
      List<Batch> open = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        open.add(loader.next(0));
      }
      assertFails(Kind.WRONG_CALL, () -> loader.next(0), "in use");
      Received received = new Received(originals);
      open.forEach(received::add);
      received.add(loader.next(0));
    }
  }
}
