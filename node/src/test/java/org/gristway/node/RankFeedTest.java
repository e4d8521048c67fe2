package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.read.PeerCaches;
import org.gristway.read.PostOffice;
import org.gristway.read.ReadCounter;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RankFeedTest {

  private static final int EPOCHS = 4;
  private static final long LAST = 28; // 203 samples in batches of 7

  @TempDir static Path folder;
  private static Packed packed;
  private static Settings settings;
  private static List<List<List<Long>>> order;

  private List<String> memoryBefore = List.of();

  @BeforeAll
  static void pack() {
    packed = Packed.in(folder);
    settings = packed.settings();
    order = packed.order(settings, 0, EPOCHS);
    assertThat(order.getFirst()).hasSize((int) LAST + 1);
  }

  @BeforeEach
  void look() {
    memoryBefore = Packed.memoryFiles();
  }

  private static RankFeed open(Settings of) {
    return new RankFeed(0, of, 1, PostOffice.alone(1, 2), PeerCaches.NONE, line -> {});
  }

  private static RankFeed open() {
    RankFeed feed = open(settings);
    feed.attach(client("client"), 2);
    return feed;
  }

  /** The samples of a batch, which is given back. */
  private record Named(Object name) implements RankFeed.Client {
    @Override
    public void check() {}
  }

  private static RankFeed.Client client(Object name) {
    return new Named(name);
  }

  private static List<Long> take(RankFeed feed, Object client, long epoch, long step, int workers)
      throws InterruptedException {
    return take(feed, client, epoch, step, 1, 1, workers);
  }

  private static List<Long> take(
      RankFeed feed, Object client, long epoch, long start, int count, int atOnce, int workers)
      throws InterruptedException {
    List<Piece> pieces = feed.take(client(client), epoch, start, count, atOnce, workers);
    List<Long> samples = Packed.samples(pieces);
    pieces.forEach(piece -> feed.release(client(client), piece));
    return samples;
  }

  private static List<Long> expected(long epoch, long step) {
    return step > LAST ? List.of() : order.get((int) epoch).get((int) step);
  }

  @Test
  void batches_have_the_order_of_a_loader() throws Exception {
    try (RankFeed feed = open()) {
      assertThat(feed.firstEpoch()).isZero();
      assertThat(feed.firstStep()).isZero();
      for (long epoch = 0; epoch < EPOCHS; epoch++) {
        assertThat(feed.steps(epoch)).isEqualTo(LAST + 1);
        for (long step = 0; step <= LAST; step++) {
          assertThat(take(feed, "client", epoch, step, 1)).isEqualTo(expected(epoch, step));
        }
        assertThat(take(feed, "client", epoch, LAST + 1, 1)).isEmpty();
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  @Test
  void asking_twice_gives_the_same_batch() throws Exception {
    try (RankFeed feed = open()) {
      for (long step : new long[] {0, 0, 1, 1, 0, 2, LAST, LAST, LAST - 1, LAST + 1, 0}) {
        assertThat(take(feed, "client", 1, step, 1)).isEqualTo(expected(1, step));
      }
    }
  }

  @Test
  void any_step_of_any_epoch_may_come_next() throws Exception {
    Random random = new Random(Seeds.of("any_step_of_any_epoch_may_come_next"));
    for (int i = 0; i < Thorough.count(2, 40); i++) {
      try (RankFeed feed = open()) {
        long epoch = 0;
        long step = 0;
        for (int request = 0; request < 100; request++) {
          assertThat(take(feed, "client", epoch, step, 1))
              .as("step %d of epoch %d", step, epoch)
              .isEqualTo(expected(epoch, step));
          switch (random.nextInt(8)) {
            case 0 -> {
              epoch = random.nextInt(EPOCHS);
              step = random.nextInt((int) LAST + 3);
            }
            case 1 -> epoch = random.nextInt(EPOCHS);
            case 2 -> {
              epoch = Math.min(epoch + 1, EPOCHS - 1); // as after a break
              step = 0;
            }
            default -> step = step > LAST ? 0 : step + 1;
          }
        }
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  /** Workers of a DataLoader ask for every so many-th batch, each at its own pace. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3, 5})
  void workers_may_be_ahead_of_each_other_and_be_replaced(int workers) throws Exception {
    Random random = new Random(Seeds.of("workers_may_be_ahead_of_each_other"));
    for (int i = 0; i < Thorough.count(2, 40); i++) {
      try (RankFeed feed = open(settings)) {
        for (int worker = 0; worker < workers; worker++) {
          feed.attach(client(worker), 3);
        }
        for (long epoch = 0; epoch < EPOCHS - 1; epoch++) {
          readInTurns(feed, epoch, workers, random);
        }
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  private static void readInTurns(RankFeed feed, long epoch, int workers, Random random)
      throws InterruptedException {
    long[] next = LongStream.range(0, workers).toArray();
    while (LongStream.of(next).anyMatch(step -> step <= LAST)) {
      int worker = random.nextInt(workers);
      long slowest = LongStream.of(next).min().orElseThrow();
      if (next[worker] > slowest + workers || next[worker] > LAST + workers) {
        continue; // it waits for the trainer to take what it has
      }
      assertThat(take(feed, worker, epoch, next[worker], workers))
          .as("step %d of epoch %d", next[worker], epoch)
          .isEqualTo(expected(epoch, next[worker]));
      next[worker] += workers;
      if (random.nextInt(20) == 0) {
        // It died, and one that takes its place does its last batch again.
        feed.detach(client(worker));
        feed.attach(client(worker), 3);
        next[worker] = Math.max(worker, next[worker] - workers);
      }
    }
  }

  @Test
  void many_threads_get_what_is_theirs() throws Exception {
    long seed = Seeds.of("many_threads_get_what_is_theirs");
    for (int i = 0; i < Thorough.count(2, 40); i++) {
      int workers = 2 + i % 3;
      try (RankFeed feed = open(settings)) {
        List<FutureTask<Void>> tasks = new ArrayList<>();
        for (int worker = 0; worker < workers; worker++) {
          int own = worker;
          Random random = new Random(seed + 100L * i + worker);
          feed.attach(client(own), 2);
          tasks.add(inThread(() -> work(feed, own, workers, random)));
        }
        for (FutureTask<Void> task : tasks) {
          task.get();
        }
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  private static Void work(RankFeed feed, int worker, int workers, Random random)
      throws InterruptedException {
    for (long epoch = 0; epoch < EPOCHS; epoch++) {
      for (long step = worker; step <= LAST + workers; step += workers) {
        List<Piece> pieces = feed.take(client(worker), epoch, step, 1, 1, workers);
        assertThat(Packed.samples(pieces)).isEqualTo(expected(epoch, step));
        if (random.nextInt(4) == 0) {
          TimeUnit.MICROSECONDS.sleep(random.nextInt(3000));
        }
        // Nobody has built in it meanwhile.
        assertThat(Packed.samples(pieces)).isEqualTo(expected(epoch, step));
        pieces.forEach(piece -> feed.release(client(worker), piece));
      }
    }
    return null;
  }

  private static <T> FutureTask<T> inThread(Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  @Test
  void one_that_keeps_everything_is_told_so_and_may_go_on_when_it_has_let_go() throws Exception {
    try (RankFeed feed = open()) {
      List<Piece> kept = new ArrayList<>();
      Throwable refused = null;
      for (long step = 0; refused == null; step++) {
        long each = step;
        refused = catchThrowable(() -> kept.addAll(feed.take(client("client"), 0, each, 1, 1, 1)));
        assertThat(step).isLessThan(LAST);
      }
      assertThat(kept).hasSizeGreaterThanOrEqualTo(2);
      assertThat(refused).isInstanceOf(Failure.class).hasMessageContaining("let go");
      assertThat(((Failure) refused).kind()).isEqualTo(Kind.WRONG_CALL);
      assertThat(refused.getMessage()).contains(kept.size() + " batches of rank 0");

      long next = kept.size();
      feed.release(client("client"), kept.removeFirst());
      for (long step = next; step <= LAST; step++) {
        assertThat(take(feed, "client", 0, step, 1)).isEqualTo(expected(0, step));
      }
      for (int i = 0; i < kept.size(); i++) {
        assertThat(Packed.samples(List.of(kept.get(i)))).isEqualTo(expected(0, i + 1L));
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  @Test
  void what_one_lets_go_of_is_there_for_another_that_waits() throws Exception {
    try (RankFeed feed = open(settings)) {
      feed.attach(client("keeper"), 1);
      feed.attach(client("waiter"), 1);
      List<Piece> kept = new ArrayList<>();
      List<List<Long>> waited = Collections.synchronizedList(new ArrayList<>());
      // The keeper takes all even batches that there is room for, and the waiter odd ones.
      FutureTask<Void> waiter =
          inThread(
              () -> {
                for (long step = 1; step <= LAST; step += 2) {
                  waited.add(take(feed, "waiter", 0, step, 2));
                }
                return null;
              });
      while (kept.size() < 4) {
        kept.addAll(feed.take(client("keeper"), 0, 2L * kept.size(), 1, 1, 2));
      }
      assertThat(waiter.isDone()).isFalse();
      kept.forEach(piece -> feed.release(client("keeper"), piece)); // as when it is killed
      feed.detach(client("keeper"));
      FutureTask<Void> replacement =
          inThread(
              () -> {
                for (long step = 8; step <= LAST; step += 2) {
                  assertThat(take(feed, "replacement", 0, step, 2)).isEqualTo(expected(0, step));
                }
                return null;
              });
      waiter.get();
      replacement.get();
      assertThat(waited)
          .isEqualTo(
              LongStream.rangeClosed(1, LAST)
                  .filter(step -> step % 2 == 1)
                  .mapToObj(step -> expected(0, step))
                  .toList());
    }
  }

  /** The others may have had theirs from a node that has died, and be done. */
  @Test
  @Timeout(value = 30, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void a_worker_that_is_behind_does_not_wait_for_others_to_take_what_they_have_had()
      throws Exception {
    for (int workers : new int[] {2, 5}) {
      try (RankFeed feed = open(settings)) {
        feed.attach(client("behind"), 1);
        for (long step = 1; step <= LAST; step += workers) {
          assertThat(take(feed, "behind", 0, step, workers)).isEqualTo(expected(0, step));
        }
      }
    }
  }

  @Test
  @Timeout(value = 30, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void one_that_is_gone_does_not_wait_on() throws Exception {
    record Gone(int number) implements RankFeed.Client {
      @Override
      public void check() {
        throw Failure.environment("gone");
      }
    }
    List<Gone> clients = List.of(new Gone(0), new Gone(1));
    try (RankFeed feed = open(settings)) {
      clients.forEach(client -> feed.attach(client, 1));
      // In turns they take and keep, until one has to wait for what the other has.
      assertThatThrownBy(
              () -> {
                for (int step = 0; step <= LAST; step++) {
                  feed.take(clients.get(step % 2), 0, step, 1, 1, 2);
                }
              })
          .isInstanceOf(Failure.class)
          .hasMessage("gone");
    }
  }

  @Test
  void closing_ends_all_waiting() throws Exception {
    RankFeed feed = open(settings);
    feed.attach(client("keeper"), 1);
    feed.attach(client("waiter"), 1);
    List<Piece> kept = new ArrayList<>(feed.take(client("keeper"), 0, 0, 1, 1, 2));
    kept.addAll(feed.take(client("keeper"), 0, 2, 1, 1, 2));
    FutureTask<Void> waiter =
        inThread(
            () -> {
              for (long step = 1; ; step += 2) {
                feed.take(client("waiter"), 0, step, 1, 1, 2); // and never gives back
              }
            });
    TimeUnit.MILLISECONDS.sleep(200);
    feed.close();
    assertThatThrownBy(() -> waiter.get(10, TimeUnit.SECONDS))
        .isInstanceOf(ExecutionException.class)
        .hasCauseInstanceOf(Failure.class);
    assertThat(catchThrowable(() -> feed.take(client("keeper"), 0, 0, 1, 1, 1)))
        .isInstanceOf(Failure.class);
    kept.forEach(piece -> feed.release(client("keeper"), piece));
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  private static Settings redirect(byte[] set) {
    return new Settings(packed.text("mode=redirect", "batch=1"), "", set);
  }

  /** All samples of an epoch, in requests of a size, from several workers in turn. */
  private static List<Long> ask(RankFeed feed, long epoch, int size, int workers, int count)
      throws InterruptedException {
    List<Long> given = new ArrayList<>();
    for (int start = 0, request = 0; start < count; start += size, request++) {
      int wanted = Math.min(size, count - start);
      given.addAll(take(feed, request % workers, epoch, start, wanted, size, workers));
    }
    return given;
  }

  private static List<Long> all() {
    return LongStream.range(0, Packed.SAMPLES).boxed().toList();
  }

  @Test
  void asked_by_index_each_sample_is_given_once_in_an_order_that_no_batch_size_changes()
      throws Exception {
    List<List<Long>> first = new ArrayList<>();
    for (int size : new int[] {4, 1, 7, 50, Packed.SAMPLES}) {
      for (int workers : new int[] {1, 2, 3}) {
        try (RankFeed feed = open(redirect(new byte[0]))) {
          for (int worker = 0; worker < workers; worker++) {
            feed.attach(client(worker), 2);
          }
          List<List<Long>> epochs = new ArrayList<>();
          for (long epoch = 0; epoch < 2; epoch++) {
            List<Long> given = ask(feed, epoch, size, workers, Packed.SAMPLES);
            assertThat(given).containsExactlyInAnyOrderElementsOf(all());
            assertThat(feed.take(client("client"), epoch, Packed.SAMPLES, 1, size, 1)).isEmpty();
            epochs.add(given);
          }
          if (first.isEmpty()) {
            first = epochs;
          }
          assertThat(epochs).as("%d at once by %d", size, workers).isEqualTo(first);
        }
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  @Test
  void only_samples_of_the_set_are_given() throws Exception {
    long[] set = LongStream.range(0, Packed.SAMPLES).filter(i -> i % 3 == 1).toArray();
    try (RankFeed feed = open(redirect(Packed.set(set)))) {
      assertThat(feed.steps(0)).isEqualTo(set.length);
      assertThat(ask(feed, 0, 4, 2, set.length))
          .containsExactlyInAnyOrderElementsOf(LongStream.of(set).boxed().toList());
    }
  }

  @Test
  void counters_go_on_when_reading_begins_anew_and_memory_is_only_what_is_in_use()
      throws Exception {
    try (RankFeed feed = open()) {
      long received = 0;
      for (long step : new long[] {0, 1, 20, 2, 25, 3, 27, 0}) {
        received += take(feed, "client", 0, step, 1).size();
      }
      Map<ReadCounter, Long> counters = feed.counters();
      assertThat(counters.get(ReadCounter.SAMPLES)).isGreaterThanOrEqualTo(received);
      assertThat(counters.get(ReadCounter.RESIDENT_BYTES)).isBetween(0L, 65536L);
      // A batch has 7 samples of 1,000 bytes; a few are in memory at once.
      assertThat(counters.get(ReadCounter.HANDOVER_BYTES)).isBetween(7_000L, 300_000L);
    }
  }

  @Test
  void a_failure_is_told_to_everyone_who_asks(@TempDir Path other) throws Exception {
    Packed damaged = Packed.in(other);
    damaged.damage();
    try (RankFeed feed = open(damaged.settings("strict=true"))) {
      for (int attempt = 0; attempt < 3; attempt++) {
        Throwable told =
            catchThrowable(
                () -> {
                  for (long step = 0; step <= LAST; step++) {
                    take(feed, "client", 0, step, 1);
                  }
                });
        assertThat(told).isInstanceOf(Failure.class).hasMessageContaining(".gwc");
        assertThat(((Failure) told).kind()).isEqualTo(Kind.DAMAGED);
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  @Test
  void what_stays_in_memory_is_read_once_however_epochs_are_broken_off() throws Exception {
    Settings resident = packed.settings("policy=unbounded");
    List<List<List<Long>>> order = packed.order(resident, 0, 6);
    try (RankFeed feed = open(resident)) {
      feed.attach(client("client"), 2);
      assertThat(take(feed, "client", 0, 0, 1)).isEqualTo(order.getFirst().getFirst());
      long read = feed.counters().get(ReadCounter.STORAGE_BYTES);
      for (int epoch = 0; epoch < 6; epoch += epoch < 4 ? 1 : 2) {
        for (int step : new int[] {1, 2, 20, (int) LAST - epoch}) {
          assertThat(take(feed, "client", epoch, step, 1)).isEqualTo(order.get(epoch).get(step));
        }
      }
      assertThat(feed.counters().get(ReadCounter.STORAGE_BYTES)).isEqualTo(read);
      // Back is another matter.
      assertThat(take(feed, "client", 0, 3, 1)).isEqualTo(order.getFirst().get(3));
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  @Test
  void damage_is_told_and_does_not_change_the_order(@TempDir Path other) throws Exception {
    Packed damaged = Packed.in(other);
    List<List<List<Long>>> sound = damaged.order(damaged.settings(), 0, 1);
    damaged.damage();
    List<String> notices = Collections.synchronizedList(new ArrayList<>());
    int differ = 0;
    try (RankFeed feed =
        new RankFeed(
            0, damaged.settings(), 1, PostOffice.alone(1, 2), PeerCaches.NONE, notices::add)) {
      for (long step = 0; step <= LAST; step++) {
        List<Long> given = take(feed, "client", 0, step, 1);
        List<Long> due = sound.getFirst().get((int) step);
        assertThat(given).hasSameSizeAs(due);
        for (int i = 0; i < due.size(); i++) {
          differ += given.get(i).equals(due.get(i)) ? 0 : 1;
        }
      }
    }
    assertThat(differ).isEqualTo(1);
    assertThat(notices).hasSizeBetween(1, 2).allMatch(line -> line.contains("is damaged"));
  }

  @Test
  void when_it_cannot_begin_anew_the_next_request_tries_again(@TempDir Path other)
      throws Exception {
    Packed moving = Packed.in(other);
    Path elsewhere = other.resolve("elsewhere.gw");
    List<List<Long>> whole = moving.order(moving.settings(), 0, 1).getFirst();
    try (RankFeed feed = open(moving.settings())) {
      assertThat(take(feed, "client", 0, 5, 1)).isEqualTo(whole.get(5));
      long counted = feed.counters().get(ReadCounter.SAMPLES);
      Files.move(moving.path(), elsewhere);
      for (int attempt = 0; attempt < 3; attempt++) {
        assertThatThrownBy(() -> take(feed, "client", 0, 0, 1))
            .isInstanceOf(Failure.class)
            .hasMessageContaining(moving.path().toString());
        // Nothing is counted twice because of it.
        assertThat(feed.counters().get(ReadCounter.SAMPLES)).isLessThan(counted + 100);
      }
      Files.move(elsewhere, moving.path());
      for (long step = 0; step <= LAST; step++) {
        assertThat(take(feed, "client", 0, step, 1)).isEqualTo(whole.get((int) step));
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  @Test
  void states_say_where_an_epoch_is() throws Exception {
    String state;
    try (RankFeed feed = open()) {
      state = feed.stateAt(1, 9);
    }
    try (RankFeed feed = open(new Settings(packed.text(), state, new byte[0]))) {
      assertThat(feed.firstEpoch()).isEqualTo(1);
      assertThat(feed.firstStep()).isEqualTo(9);
      for (long step : new long[] {9, 10, 28, 9, 11}) {
        assertThat(take(feed, "client", 1, step, 1)).isEqualTo(expected(1, step));
      }
      assertThat(take(feed, "client", 3, 4, 1)).isEqualTo(expected(3, 4));
      assertThat(feed.stateAt(1, 9)).isEqualTo(state);
    }
  }
}
