package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.gristway.pack.Packs.assertFails;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.handover.Batch;
import org.gristway.handover.Handover;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.policy.UnboundedPolicy;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

/** From opening to closing: what a loader takes, when it refuses, and that nothing is left. */
@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderLifeTest {

  static final List<String> POLICIES = LoaderContract.POLICIES;

  private static final int SAMPLES = 300;
  private static final int EXTENT = 8 << 10;
  private static final LoaderOptions OPTIONS =
      LoaderOptions.DEFAULT.withExtentBytes(EXTENT).withMemory(10 * EXTENT).withBatchSize(5);

  @TempDir static Path folder;
  private static Originals originals;
  private final Remains before = Remains.now();
  private final List<String> openBefore = Remains.open(originals.path());

  @BeforeAll
  static void pack() {
    Random random = new Random(Seeds.of("LoaderLifeTest"));
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < SAMPLES; i++) {
      tree.put("sample" + i, Trees.bytes(random, 500 + random.nextInt(1500)));
    }
    originals = Originals.of(Packs.pack(tree, folder.resolve("dataset")));
  }

  private static Loader open(LoaderOptions options) {
    return Loader.open(originals.path(), options);
  }

  @AfterEach
  void nothing_is_left() {
    before.assertNoMore();
    assertThat(Remains.open(originals.path())).isEqualTo(openBefore);
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void a_slow_trainer_holds_reading_back_and_loses_nothing(String policy) throws Exception {
    Received received = new Received(originals);
    try (Loader loader = open(OPTIONS.withPolicy(policy).withEpochs(2))) {
      for (int taken = 0; taken < 3; taken++) {
        Ahead.awaitIdle();
        // What is in frames, and what has gone from there to batches.
        long built = (taken + Handover.AREAS_AHEAD) * (long) OPTIONS.batchSize();
        assertThat(loader.counter(ReadCounter.STORAGE_BYTES))
            .isPositive()
            .isLessThanOrEqualTo(loader.memoryBytes() + built * (originals.longest() + 8190));
        assertThat(loader.counter(ReadCounter.RESIDENT_BYTES))
            .isLessThanOrEqualTo(loader.memoryBytes());
        assertThat(loader.handoverBytes())
            .isEqualTo(loader.counter(ReadCounter.HANDOVER_BYTES))
            .isLessThanOrEqualTo(mostHandover(1));
        received.add(loader.next(0));
      }
      received.addEpoch(loader).addEpoch(loader);
      assertThat(loader.handoverBytes()).isLessThanOrEqualTo(mostHandover(1));
    }
    received.ofEpoch(0).assertEachOnce();
    received.ofEpoch(1).assertEachOnce();
  }

  /** What areas of the longest possible batch would take, with the eighth that they are larger. */
  private static long mostHandover(int ranks) {
    long longest = 4096 + OPTIONS.batchSize() * (originals.longest() + 100L);
    return ranks * Handover.AREAS_AHEAD * longest * 9 / 8;
  }

  @Test
  void a_rank_that_nobody_reads_holds_no_other_back() {
    try (Loader loader = open(OPTIONS.withRanks(3).withMemory(12 * EXTENT).withEpochs(1))) {
      Received received = new Received(originals);
      loader.epoch(1).forEach(received::add);
      assertThat(received.batches(1)).isEqualTo(SAMPLES / 3 / OPTIONS.batchSize());
      assertThat(loader.handoverBytes()).isLessThanOrEqualTo(mostHandover(3));
    }
  }

  @Test
  void holding_every_batch_is_refused_until_one_is_closed() {
    try (Loader loader = open(OPTIONS)) {
      List<Batch> held = new ArrayList<>();
      for (int i = 0; i < Handover.AREAS_AHEAD; i++) {
        held.add(loader.next(0));
      }
      for (int i = 0; i < 2; i++) {
        assertFails(
            Kind.WRONG_CALL,
            () -> loader.next(0),
            Handover.AREAS_AHEAD + " batches",
            "close a batch");
      }
      Received received = new Received(originals).add(held.remove(1));
      held.add(loader.next(0));
      assertFails(Kind.WRONG_CALL, () -> loader.next(0), "close a batch");
      held.forEach(received::add);
      received.addEpoch(loader).assertEachOnce();
    }
  }

  @Test
  void batches_may_be_closed_in_any_order_and_keep_their_bytes_until_then() {
    Random random = new Random(Seeds.of("batches_may_be_closed_in_any_order"));
    try (Loader loader = open(OPTIONS.withEpochs(1))) {
      Received received = new Received(originals);
      List<Batch> held = new ArrayList<>();
      for (int left = SAMPLES / OPTIONS.batchSize(); left > 0; left--) {
        held.add(loader.next(0));
        while (held.size() == Handover.AREAS_AHEAD || random.nextInt(3) == 0 && !held.isEmpty()) {
          received.add(held.remove(random.nextInt(held.size())));
        }
      }
      held.forEach(received::add);
      received.assertEachOnce();
    }
  }

  @Test
  void views_of_a_closed_batch_throw() {
    try (Loader loader = open(OPTIONS)) {
      Batch batch = loader.next(0);
      MemorySegment view = batch.data(0);
      MemorySegment slice = view.asSlice(1);
      assertThat(view.isReadOnly()).isTrue();
      batch.close();
      batch.close();
      assertThrows(() -> view.get(ValueLayout.JAVA_BYTE, 0));
      assertThrows(() -> slice.get(ValueLayout.JAVA_BYTE, 0));
      assertThrows(() -> view.asByteBuffer().get());
      assertThrows(batch::size);
      assertThrows(() -> batch.data(0));
      assertThrows(() -> batch.key(0));
    }
  }

  private static void assertThrows(ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void a_place_outside_the_batch_throws() {
    try (Loader loader = open(OPTIONS);
        Batch batch = loader.next(0)) {
      for (int place : List.of(-1, batch.size())) {
        assertThatThrownBy(() -> batch.data(place)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> batch.sample(place)).isInstanceOf(IndexOutOfBoundsException.class);
      }
    }
  }

  @Test
  void an_epoch_left_early_goes_on_where_it_was_left() {
    try (Loader loader = open(OPTIONS.withEpochs(2))) {
      Received received = new Received(originals);
      for (Batch batch : loader.epoch()) {
        boolean enough = batch.step() == 3;
        received.add(batch);
        if (enough) {
          break;
        }
      }
      received.addEpoch(loader).assertEachOnce();
      received.addEpoch(loader).ofEpoch(1).assertEachOnce();
    }
  }

  /** Each batch is closed when the next one is asked for, whoever asks. */
  @Test
  void an_epoch_may_be_left_early_any_number_of_times() {
    try (Loader loader = open(OPTIONS.withEpochs(1))) {
      long samples = 0;
      for (int i = 0; i < 3 * Handover.AREAS_AHEAD; i++) {
        for (Batch batch : loader.epoch()) {
          samples += batch.size();
          break;
        }
      }
      assertThat(samples).isEqualTo(3L * Handover.AREAS_AHEAD * OPTIONS.batchSize());
    }
  }

  @Test
  void the_epoch_of_several_ranks_is_refused_without_a_rank() {
    try (Loader loader = open(OPTIONS.withRanks(2).withMemory(20 * EXTENT))) {
      assertFails(Kind.WRONG_CALL, loader::epoch, "2 ranks");
    }
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void closing_ends_everything_at_any_moment(String policy) throws InterruptedException {
    Random random = new Random(Seeds.of("closing_ends_everything_at_any_moment"));
    for (int i = 0; i < 20; i++) {
      int ranks = 1 + random.nextInt(3);
      LoaderOptions options =
          OPTIONS
              .withPolicy(policy)
              .withRanks(ranks)
              .withMemory(ranks * 10 * EXTENT)
              .withThreads(1 + random.nextInt(16));
      List<MemorySegment> views = new ArrayList<>();
      try (Loader loader = open(options)) {
        new Received(originals).addSteps(loader, random.nextInt(50));
        for (int open = random.nextInt(Handover.AREAS_AHEAD); open > 0; open--) {
          views.add(loader.next(0).data(0)); // never closed by its user
        }
        TimeUnit.MICROSECONDS.sleep(random.nextInt(3000));
      }
      before.assertNoMore();
      views.forEach(view -> assertThrows(() -> view.get(ValueLayout.JAVA_BYTE, 0)));
    }
  }

  @Test
  void closing_gives_all_memory_back() {
    LoaderOptions large = OPTIONS.withMemory(1 << 30).withExtentBytes(16 << 20);
    try (Loader loader = open(large)) {
      assertThat(loader.memoryBytes()).isGreaterThan(100 << 20);
    }
    long space = Remains.addressSpace();
    for (int i = 0; i < 30; i++) {
      try (Loader loader = open(large)) {
        new Received(originals).addSteps(loader, 10);
      }
    }
    // Kept, they would be 3 GiB; what else the JVM takes meanwhile is far less than one.
    assertThat(Remains.addressSpace() - space).isLessThan(1L << 30);
  }

  @Test
  void closing_twice_does_nothing() {
    Loader loader = open(OPTIONS);
    loader.next(0).close();
    loader.close();
    loader.close();
  }

  @Test
  void closing_from_another_thread_ends_everything() throws Exception {
    Loader loader = open(OPTIONS);
    Batch batch = loader.next(0);
    CompletableFuture.runAsync(loader::close).get();
    assertThrows(batch::size);
    batch.close();
  }

  @Test
  void closing_wakes_a_trainer_that_waits() throws Exception {
    Loader loader = open(OPTIONS.withEpochs(1).withBatchSize(SAMPLES).withThreads(1));
    loader.next(0).close();
    List<Throwable> thrown = Collections.synchronizedList(new ArrayList<>());
    Thread trainer =
        Thread.ofPlatform()
            .uncaughtExceptionHandler((_, failure) -> thrown.add(failure))
            .start(() -> loader.next(0));
    loader.close();
    trainer.join();
    assertThat(thrown).hasSize(1);
    assertFails(Kind.WRONG_CALL, () -> throwIt(thrown.getFirst()));
  }

  /** Whoever reads meanwhile is refused, or finds its batch closed; the process lives. */
  @Test
  void closing_while_ranks_are_read_ends_their_trainers() throws InterruptedException {
    Random random = new Random(Seeds.of("closing_while_ranks_are_read_ends_their_trainers"));
    for (int i = 0; i < Thorough.count(20, 500); i++) {
      Loader loader = open(OPTIONS.withRanks(3).withMemory(30 * EXTENT));
      List<Throwable> thrown = Collections.synchronizedList(new ArrayList<>());
      List<Thread> trainers = new ArrayList<>();
      for (int rank = 0; rank < 3; rank++) {
        int each = rank;
        trainers.add(
            Thread.ofPlatform()
                .uncaughtExceptionHandler((_, failure) -> thrown.add(failure))
                .start(
                    () -> {
                      while (true) {
                        try (Batch batch = loader.next(each)) {
                          assertThat(batch.bytes(0)).hasSize((int) batch.length(0));
                        }
                      }
                    }));
      }
      TimeUnit.MICROSECONDS.sleep(random.nextInt(5000));
      loader.close();
      for (Thread trainer : trainers) {
        trainer.join();
      }
      assertThat(thrown)
          .hasSize(3)
          .allMatch(
              failure ->
                  failure instanceof IllegalStateException
                      || (failure instanceof Failure told && told.kind() == Kind.WRONG_CALL));
    }
  }

  private static void throwIt(Throwable failure) throws Throwable {
    throw failure;
  }

  @Test
  void a_closed_loader_says_so() throws InterruptedException {
    Loader loader = open(OPTIONS);
    loader.next(0).close();
    Ahead.awaitIdle(); // so that batches are ready
    loader.close();
    assertFails(Kind.WRONG_CALL, () -> loader.next(0), "closed");
    assertThat(loader.state().segments().getLast().steps()).isEqualTo(1);
  }

  @Test
  void an_interrupted_trainer_stops_waiting_and_may_come_back() {
    try (Loader loader = open(OPTIONS.withEpochs(1))) {
      Thread.currentThread().interrupt();
      assertFails(Kind.ENVIRONMENT, () -> loader.next(0), "interrupted");
      assertThat(Thread.interrupted()).isTrue();
      new Received(originals).addEpoch(loader).assertEachOnce();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void too_little_memory_is_refused_with_what_would_do(int ranks) {
    for (String policy : POLICIES) {
      LoaderOptions little = OPTIONS.withPolicy(policy).withRanks(ranks).withMemory(3072);
      if (policy.equals(UnboundedPolicy.NAME)) {
        LoaderContract.assertKept(originals, little, 1);
        continue;
      }
      String message = refusal(little);
      assertThat(message).contains(policy);
      String each = message.replaceAll(".*give it (\\d+) or more for each rank.*", "$1");
      long enough = ranks * Long.parseLong(each);
      LoaderContract.assertKept(originals, little.withMemory(enough), 1);
      assertThat(refusal(little.withMemory(enough - 1))).contains("give it " + each + " or more");
    }
  }

  private static String refusal(LoaderOptions options) {
    String[] message = new String[1];
    assertFails(
        Kind.WRONG_CALL,
        () -> {
          try (Loader unexpected = open(options)) {
            assertThat(unexpected).isNull();
          } catch (RuntimeException refused) {
            message[0] = refused.getMessage();
            throw refused;
          }
        },
        "too small");
    return message[0];
  }

  @Test
  void more_memory_than_the_machine_has_is_refused_with_what_there_is() {
    LoaderOptions huge = OPTIONS.withMemory(1L << 50).withExtentBytes(1 << 30).withRanks(4096);
    assertFails(Kind.ENVIRONMENT, () -> open(huge).close(), "at most that much memory", "not free");
  }

  @Test
  void refused_options_say_what_is_wrong() {
    assertFails(Kind.WRONG_CALL, () -> OPTIONS.withRanks(0), "ranks");
    assertFails(Kind.WRONG_CALL, () -> OPTIONS.withThreads(0), "thread");
    assertFails(Kind.WRONG_CALL, () -> OPTIONS.withEpochs(-1), "epochs");
    assertFails(Kind.WRONG_CALL, () -> OPTIONS.withMemory(0), "memory");
    assertFails(Kind.WRONG_CALL, () -> open(OPTIONS.withBatchSize(0)), "batch");
    assertFails(Kind.WRONG_CALL, () -> open(OPTIONS.withExtentBytes(5000)), "4KiB");
    assertFails(Kind.WRONG_CALL, () -> open(OPTIONS.withPolicy("best")), "best", "redirect");
    assertFails(Kind.WRONG_CALL, () -> Loader.open(folder.resolve("none"), OPTIONS), "none");
  }

  @Test
  void counters_count_what_trainers_have_received() throws InterruptedException {
    try (Loader loader = open(OPTIONS.withRanks(2).withMemory(20 * EXTENT).withEpochs(2))) {
      Received received = new Received(originals).addSteps(loader, 3);
      Ahead.awaitIdle();
      assertThat(loader.counter(ReadCounter.BATCHES)).isEqualTo(6);
      assertThat(loader.counter(ReadCounter.SAMPLES)).isEqualTo(received.places().size());
      assertThat(loader.counter(ReadCounter.EPOCHS)).isZero();
      received.addEpoch(loader);
      assertThat(loader.counter(ReadCounter.EPOCHS)).isEqualTo(1);
      received.addEpoch(loader);
      assertThat(loader.counter(ReadCounter.EPOCHS)).isEqualTo(2);
      assertThat(loader.counter(ReadCounter.SAMPLES)).isEqualTo(2 * SAMPLES);
      assertThat(loader.counter(ReadCounter.BYTES)).isEqualTo(2 * originals.bytes());
      assertThat(loader.counter(ReadCounter.STORAGE_BYTES))
          .isEqualTo(loader.report(0).storageBytes() + loader.report(1).storageBytes());
      assertThat(loader.counter(ReadCounter.STORAGE_READS))
          .isEqualTo(loader.report(0).storageReads() + loader.report(1).storageReads());
      assertThat(loader.counter(ReadCounter.RESIDENT_BYTES)).isZero();
    }
  }
}
