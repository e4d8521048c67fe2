package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.gristway.Failure.Kind;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.ReadState;
import org.gristway.plan.Tail;
import org.gristway.plan.policy.RedirectPolicy;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;

/** Invariant 7: a state, restored into any world, never loses or repeats a sample. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderResumeTest {

  static final List<String> POLICIES = LoaderContract.POLICIES;

  @TempDir static Path folder;
  private static Originals originals;

  @BeforeAll
  static void pack() {
    Random random = new Random(Seeds.of("LoaderResumeTest"));
    originals = Originals.of(Packs.pack(Trees.random(random, 150), folder.resolve("dataset")));
  }

  private static Loader open(LoaderOptions options, ReadState state) {
    return Loader.open(originals.path(), options, throughText(state));
  }

  private static ReadState throughText(ReadState state) {
    ReadState parsed = ReadState.parse(state.toString());
    assertThat(parsed).isEqualTo(state);
    return parsed;
  }

  /** The state of a run before anything is received. */
  private static ReadState beginning(LoaderOptions options) {
    try (Loader loader = Loader.open(originals.path(), options)) {
      return loader.state();
    }
  }

  private static LoaderOptions anyOptions(Random random) {
    return anyOptions(random, POLICIES.get(random.nextInt(POLICIES.size())));
  }

  private static LoaderOptions anyOptions(Random random, String policy) {
    Tail tail = random.nextBoolean() ? Tail.SHORT : Tail.PAD;
    return LoaderContract.anyOptions(random, policy, tail, 1 + random.nextInt(3))
        .withBatchSize(1 + random.nextInt(12))
        .withSeed(7);
  }

  private static long steps(LoaderOptions options) {
    long global = (long) options.batchSize() * options.ranks();
    return (originals.count() + global - 1) / global;
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void the_same_world_goes_on_with_the_same_order(String policy) {
    Random random = new Random(Seeds.of("the_same_world_goes_on_with_the_same_order"));
    for (int i = 0; i < Thorough.count(5, 100); i++) {
      LoaderOptions options = anyOptions(random, policy).withEpochs(3);
      long all = 3 * steps(options);
      long first = random.nextLong(all + 1);
      long second = random.nextLong(all - first + 1);
      Received received = new Received(originals);
      ReadState state = beginning(options);
      for (long stretch : List.of(first, second, all - first - second)) {
        try (Loader loader = open(options, state)) {
          received.addSteps(loader, stretch);
          state = loader.state();
        }
      }
      assertThat(received.inOrder()).as("%s", options).isEqualTo(uninterrupted(options));
      assertThat(state.epoch()).isEqualTo(3);
    }
  }

  private static List<Received.Place> uninterrupted(LoaderOptions options) {
    Received received = new Received(originals);
    try (Loader loader = Loader.open(originals.path(), options)) {
      for (long epoch = 0; epoch < options.epochs(); epoch++) {
        received.addEpoch(loader);
      }
    }
    return received.inOrder();
  }

  @Test
  void other_worlds_go_on_with_what_is_left() {
    Random random = new Random(Seeds.of("other_worlds_go_on_with_what_is_left"));
    for (int i = 0; i < Thorough.count(20, 300); i++) {
      LoaderOptions options = anyOptions(random);
      Received received = new Received(originals);
      ReadState state = beginning(options);
      StringBuilder story = new StringBuilder();
      for (int ranks : List.of(1, 2, 3, 1)) {
        options = anyOptions(random).withRanks(ranks).withMemory(1 << 20);
        try (Loader loader = open(options, state)) {
          long steps = random.nextLong(steps(options) / 3 + 2);
          story.append(options).append(" steps ").append(steps).append('\n');
          received.addSteps(loader, steps);
          state = loader.state();
        }
      }
      try (Loader loader = open(options.withEpochs(state.epoch() + 2), state)) {
        for (long epoch = state.epoch(); epoch < state.epoch() + 2; epoch++) {
          received.addEpoch(loader);
        }
      }
      for (long epoch = 0; epoch < state.epoch() + 2; epoch++) {
        assertThat(received.ofEpoch(epoch).assertNoneTwice())
            .as("epoch %d of %s", epoch, story)
            .isZero();
      }
    }
  }

  @Test
  void a_world_that_is_left_and_comes_back_goes_on_too() {
    LoaderOptions one =
        LoaderOptions.DEFAULT.withBatchSize(4).withMemory(1 << 20).withExtentBytes(8 << 10);
    LoaderOptions two = one.withRanks(2);
    Received received = new Received(originals);
    ReadState state = beginning(one);
    for (LoaderOptions options : List.of(one, two, one, two, one)) {
      try (Loader loader = open(options, state)) {
        received.addSteps(loader, 3);
        state = loader.state();
      }
    }
    assertThat(state.segments()).hasSize(5);
    try (Loader loader = open(one, state)) {
      received.addEpoch(loader).assertEachOnce();
      assertThat(loader.state().segments()).hasSize(1);
      received.addEpoch(loader).ofEpoch(1).assertEachOnce();
    }
  }

  @ParameterizedTest
  @EnumSource(Tail.class)
  void what_a_tail_leaves_out_stays_less_than_a_global_batch(Tail tail) {
    LoaderOptions one =
        LoaderOptions.DEFAULT
            .withBatchSize(7)
            .withMemory(1 << 20)
            .withExtentBytes(8 << 10)
            .withTail(tail);
    LoaderOptions three = one.withRanks(3);
    Received received = new Received(originals);
    ReadState state;
    try (Loader loader = Loader.open(originals.path(), one)) {
      received.addSteps(loader, 5);
      state = loader.state();
    }
    try (Loader loader = open(three, state)) {
      received.addEpoch(loader);
    }
    assertThat(received.assertNoneTwice()).isLessThan(tail == Tail.DROP ? 21 : 1);
  }

  @Test
  void a_state_counts_what_was_received_and_not_what_is_ready() throws InterruptedException {
    LoaderOptions options = LoaderOptions.DEFAULT.withBatchSize(10).withMemory(1 << 20);
    try (Loader loader = Loader.open(originals.path(), options)) {
      Ahead.awaitIdle();
      assertThat(loader.state().segments().getLast().steps()).isZero();
      try (Batch held = loader.next(0)) {
        assertThat(held.step()).isZero();
        assertThat(loader.state().segments().getLast().steps()).isEqualTo(1);
      }
      assertThat(loader.state().segments().getLast().steps()).isEqualTo(1);
    }
  }

  @Test
  void a_state_at_the_end_of_an_epoch_goes_on_with_the_next_in_any_world() {
    LoaderOptions one =
        LoaderOptions.DEFAULT.withBatchSize(10).withMemory(1 << 20).withExtentBytes(8 << 10);
    ReadState state;
    try (Loader loader = Loader.open(originals.path(), one)) {
      new Received(originals).addEpoch(loader).assertEachOnce();
      state = loader.state();
    }
    for (LoaderOptions options : List.of(one, one.withRanks(3))) {
      try (Loader loader = open(options.withEpochs(2), state)) {
        Received received = new Received(originals).addEpoch(loader);
        received.ofEpoch(1).assertEachOnce();
        assertThat(received.ofEpoch(0).places()).isEmpty();
        assertFails(Kind.WRONG_CALL, () -> loader.next(0), "no more batches");
      }
    }
  }

  @Test
  void a_state_of_a_finished_run_has_no_more_batches() {
    LoaderOptions options = LoaderOptions.DEFAULT.withMemory(1 << 20).withEpochs(1);
    ReadState state;
    try (Loader loader = Loader.open(originals.path(), options)) {
      new Received(originals).addEpoch(loader).assertEachOnce();
      state = loader.state();
    }
    try (Loader loader = open(options, state)) {
      assertThat(loader.epoch()).isEmpty();
      assertFails(Kind.WRONG_CALL, () -> loader.next(0), "no more batches");
      assertThat(loader.state()).isEqualTo(state);
    }
  }

  @Test
  void a_state_that_is_restored_and_taken_at_once_is_the_same() {
    Random random = new Random(Seeds.of("a_state_that_is_restored_and_taken_at_once"));
    LoaderOptions options = anyOptions(random);
    ReadState state;
    try (Loader loader = Loader.open(originals.path(), options)) {
      new Received(originals).addSteps(loader, 1);
      state = loader.state();
    }
    try (Loader loader = open(options, state)) {
      assertThat(loader.state()).isEqualTo(state);
    }
  }

  @Test
  void ranks_at_different_steps_have_no_state() {
    LoaderOptions options = LoaderOptions.DEFAULT.withRanks(3).withMemory(6 << 20).withBatchSize(5);
    try (Loader loader = Loader.open(originals.path(), options)) {
      ReadState before = loader.state();
      loader.next(1).close();
      assertFails(Kind.WRONG_CALL, loader::state, "rank 1", "step 1", "between steps");
      loader.next(0).close();
      assertFails(Kind.WRONG_CALL, loader::state, "rank 2", "step 0");
      loader.next(2).close();
      assertThat(loader.state()).isNotEqualTo(before);
    }
  }

  @Test
  void what_is_read_again_after_a_resume_is_counted_apart() {
    LoaderOptions options =
        LoaderOptions.DEFAULT
            .withPolicy(RedirectPolicy.NAME)
            .withBatchSize(10)
            .withMemory(32 << 10) // or all of it is read before the state is taken
            .withExtentBytes(4 << 10);
    ReadState state;
    try (Loader loader = Loader.open(originals.path(), options)) {
      new Received(originals).addSteps(loader, 7);
      assertThat(loader.report(0).rereadBytes()).isZero();
      state = loader.state();
    }
    for (LoaderOptions next : List.of(options, options.withRanks(2))) {
      try (Loader loader = open(next, state)) {
        new Received(originals).addEpoch(loader);
        EpochReport report = loader.report(0);
        assertThat(report.rereadBytes()).isPositive().isLessThan(report.storageBytes());
        assertThat(loader.report(1).rereadBytes()).isZero();
      }
    }
  }

  @Test
  void a_state_of_something_else_is_refused() {
    LoaderOptions options = LoaderOptions.DEFAULT.withMemory(1 << 20);
    ReadState state = beginning(options);
    Path other = Packs.pack(Trees.of("a", "b"), folder.resolve("other"));
    assertFails(Kind.WRONG_CALL, () -> Loader.open(other, options, state), state.dataset());
    assertFails(Kind.WRONG_CALL, () -> open(options.withSeed(5), state), "seed 0", "5");
    Path grown = Packs.pack(Trees.of("a", "b"), folder.resolve("grown"));
    ReadState ofFirst;
    try (Loader loader = Loader.open(grown, options)) {
      ofFirst = loader.state();
    }
    Packs.append(Trees.write(Trees.of("c", "d"), folder.resolve("more")), grown);
    assertFails(Kind.WRONG_CALL, () -> Loader.open(grown, options, ofFirst), "version");
    try (Loader loader =
        Loader.open(Dataset.open(grown, 1), options, Beginning.at(ofFirst), line -> {})) {
      assertThat(loader.state()).isEqualTo(ofFirst);
    }
  }
}
