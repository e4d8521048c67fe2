package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Several that are fed from one feed: workers of a DataLoader, and those that keep, die or wait.
 */
class RankFeedClientsTest extends RankFeedTesting {

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
}
