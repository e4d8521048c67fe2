package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.gristway.pack.Packs.assertFails;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.LongPredicate;
import java.util.stream.LongStream;
import org.gristway.Failure.Kind;
import org.gristway.handover.Batch;
import org.gristway.pack.Trees;
import org.gristway.plan.Tail;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Samples that are asked for by index, and answered with any of a set. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AskedAnyTest extends AskedSamples {

  static final List<String> POLICIES = LoaderContract.NOT_CACHING;

  @ParameterizedTest
  @FieldSource("POLICIES")
  void requests_get_each_sample_of_the_set_once_per_epoch(String policy) {
    Random random = new Random(Seeds.of("redirected_requests_get_each_sample_of_the_set_once"));
    for (int i = 0; i < Thorough.count(4, 60); i++) {
      int share = random.nextInt(101);
      int salt = random.nextInt();
      LongPredicate isIn = sample -> new Random(sample * 31 + salt).nextInt(100) < share;
      LoaderOptions options = LoaderContract.anyOptions(random, policy, Tail.SHORT, 1);
      try (AskedLoader loader = AskedLoader.redirected(originals.path(), options, isIn)) {
        assertThat(loader.size()).isEqualTo(LongStream.range(0, SAMPLES).filter(isIn).count());
        for (int epoch = 0; epoch < 3; epoch++) {
          loader.setEpoch(epoch);
          Received received = ask(loader, requests(random, isIn, 20));
          received.assertEachOnce(isIn);
          long number = epoch;
          assertThat(received.places()).allMatch(place -> place.epoch() == number);
          EpochReport report = loader.report();
          assertThat(report.epoch()).isEqualTo(epoch);
          assertThat(report.samples()).isEqualTo(loader.size());
          assertThat(report.redirected())
              .isEqualTo(
                  received.places().stream()
                      .filter(place -> place.sample() != place.request())
                      .count());
        }
      }
    }
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void a_request_that_there_is_no_room_for_changes_nothing(String policy) {
    Random random = new Random(Seeds.of("a_request_that_there_is_no_room_for_changes_nothing"));
    for (int i = 0; i < Thorough.count(4, 60); i++) {
      LoaderOptions options =
          LoaderContract.anyOptions(random, policy, Tail.SHORT, 1).withHandover(256 << 10);
      List<Batch> open = new ArrayList<>();
      try (AskedLoader loader = AskedLoader.redirected(originals.path(), options)) {
        for (int epoch = 0; epoch < 3; epoch++) {
          loader.setEpoch(epoch);
          Received received = new Received(originals);
          List<long[]> requests = new ArrayList<>(requests(random, _ -> true, 12));
          int refused = 0;
          while (!requests.isEmpty()) {
            // Not in their order: what is asked for next may be another request.
            int at = random.nextInt(requests.size());
            Batch batch = loader.getIfRoom(requests.get(at));
            if (batch != null) {
              requests.remove(at);
              open.add(batch);
            } else if (refused++ % 3 == 0) {
              long[] same = requests.get(at);
              assertFails(Kind.WRONG_CALL, () -> loader.get(same), "close a batch");
            } else {
              open.forEach(received::add); // which closes it
              open.clear();
            }
          }
          open.forEach(received::add);
          open.clear();
          if (!policy.equals("unbounded")) { // with which batches have no bytes of samples
            assertThat(refused).isPositive();
          }
          received.assertEachOnce(_ -> true);
          assertThat(loader.report().samples()).isEqualTo(SAMPLES);
        }
      }
    }
  }

  @Test
  void requests_outside_the_set_are_refused_and_change_nothing() {
    LongPredicate even = sample -> sample % 2 == 0;
    Random random = new Random(Seeds.of("redirected_requests_outside_the_set"));
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS, even)) {
      for (long index : List.of(1L, -2L, (long) SAMPLES)) {
        assertFails(
            Kind.WRONG_CALL, () -> loader.get(0, index), "index " + index, "set of 100", "split");
      }
      assertFails(Kind.WRONG_CALL, loader::get, "at least one index");
      ask(loader, requests(random, even, 10)).assertEachOnce(even);
    }
  }

  @Test
  void an_index_asked_for_twice_is_refused_with_the_usual_cause_and_changes_nothing() {
    Random random = new Random(Seeds.of("an_index_asked_for_twice"));
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS)) {
      assertFails(Kind.WRONG_CALL, () -> loader.get(7, 8, 7), "index 7", "epoch 0");
      Received received = new Received(originals).add(loader.get(7));
      assertFails(
          Kind.WRONG_CALL, () -> loader.get(8, 7), "index 7", "setEpoch", "without replacement");
      for (long[] request : requests(random, sample -> sample != 7, 10)) {
        received.add(loader.get(request));
      }
      received.assertEachOnce();
      assertFails(Kind.WRONG_CALL, () -> loader.get(8), "index 8", "setEpoch");
      loader.setEpoch(1);
      ask(loader, requests(random, sample -> true, 10)).assertEachOnce();
    }
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void the_padding_of_a_distributed_sampler_is_answered_exactly_and_flagged(String policy) {
    Random random = new Random(Seeds.of("the_padding_of_a_distributed_sampler"));
    LoaderOptions four = OPTIONS.withPolicy(policy).withRanks(4);
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), four)) {
      for (int epoch = 0; epoch < 3; epoch++) {
        loader.setEpoch(epoch);
        List<long[]> requests = new ArrayList<>(requests(random, sample -> true, 10));
        requests.add(new long[] {11});
        requests.add(new long[] {12, 11});
        Received received = ask(loader, requests);
        received.assertEachOnce();
        assertThat(
                received.places().stream()
                    .filter(Received.Place::repeat)
                    .map(Received.Place::sample))
            .containsExactly(11L, 12L, 11L);
        assertFails(Kind.WRONG_CALL, () -> loader.get(13), "index 13");
      }
    }
  }

  @Test
  void padding_is_of_the_epoch_that_it_ends() {
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS.withRanks(4))) {
      ask(loader, requests(new Random(1), sample -> true, 10));
      try (Batch padding = loader.get(11)) {
        assertThat(padding.epoch()).isZero();
      }
      assertThat(loader.report().repeated()).isEqualTo(1);
    }
  }

  @Test
  void padding_before_a_sample_larger_than_a_frame_does_not_lose_it() {
    LoaderOptions two = OPTIONS.withRanks(2).withExtentBytes(4096);
    LongPredicate isLarge = sample -> originals.length(sample) > EXTENT;
    long[] large = LongStream.range(0, SAMPLES).filter(isLarge).toArray();
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), two, isLarge)) {
      Received received = new Received(originals);
      received.add(loader.get(large[0])).add(loader.get(large[0])).add(loader.get(large[1]));
      assertThat(received.assertNoneTwice()).isEqualTo(SAMPLES - 2);
      assertThat(received.damaged()).isZero();
    }
  }

  /** Padding may come at any time: ranks do not end together. */
  @ParameterizedTest
  @ValueSource(ints = {4 << 10, 64 << 10})
  void padding_may_come_before_the_end(int extent) {
    Random random = new Random(Seeds.of("padding_may_come_before_the_end"));
    LoaderOptions four = OPTIONS.withRanks(4).withExtentBytes(extent).withMemory(12L * extent);
    for (int i = 0; i < Thorough.count(10, 200); i++) {
      List<long[]> requests = requests(random, sample -> true, 3);
      long[] padding = {requests.getFirst()[0]};
      for (int repeats = 0; repeats < 3; repeats++) {
        requests.add(1 + random.nextInt(requests.size()), padding);
      }
      try (AskedLoader loader = AskedLoader.redirected(originals.path(), four)) {
        Received received = ask(loader, requests);
        received.assertEachOnce();
        assertThat(received.repeats()).isEqualTo(3);
      }
    }
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void the_same_requests_give_the_same_order(String policy) {
    LoaderOptions options = OPTIONS.withPolicy(policy);
    List<long[]> requests = requests(new Random(5), sample -> true, 12);
    List<List<Long>> orders = new ArrayList<>();
    for (int threads : List.of(1, 16)) {
      try (AskedLoader loader =
          AskedLoader.redirected(originals.path(), options.withThreads(threads))) {
        for (int epoch = 0; epoch < 2; epoch++) {
          loader.setEpoch(epoch);
          orders.add(samples(ask(loader, requests)));
        }
        loader.setEpoch(0);
        orders.add(samples(ask(loader, requests)));
      }
    }
    assertThat(orders.get(1)).isNotEqualTo(orders.get(0));
    assertThat(orders.get(2)).as("set back").isEqualTo(orders.get(0));
    assertThat(orders.subList(3, 6)).isEqualTo(orders.subList(0, 3));
    // How requests are cut makes no difference to which sample comes next.
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), options)) {
      List<long[]> all = List.of(requests.stream().flatMapToLong(Arrays::stream).toArray());
      assertThat(samples(ask(loader, all))).isEqualTo(orders.getFirst());
    }
  }

  @Test
  void an_epoch_left_early_begins_anew_with_the_order_that_it_always_has() {
    List<long[]> requests = requests(new Random(6), sample -> true, 12);
    List<Long> first;
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS)) {
      loader.setEpoch(3);
      first = samples(ask(loader, requests));
    }
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS)) {
      for (int times = 0; times < 3; times++) {
        loader.setEpoch(3);
        Received part = ask(loader, requests.subList(0, 5));
        assertThat(samples(part)).isEqualTo(first.subList(0, part.places().size()));
      }
      loader.setEpoch(2);
      ask(loader, requests.subList(0, 5));
      loader.setEpoch(3);
      assertThat(samples(ask(loader, requests))).isEqualTo(first);
      assertFails(Kind.WRONG_CALL, () -> loader.setEpoch(-1), "-1");
    }
  }

  @Test
  void going_on_to_the_next_epoch_reads_nothing_twice() {
    Random random = new Random(Seeds.of("going_on_to_the_next_epoch_reads_nothing_twice"));
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS)) {
      for (int epoch = 0; epoch < 4; epoch++) {
        loader.setEpoch(epoch);
        loader.setEpoch(epoch);
        ask(loader, requests(random, sample -> true, 12)).assertEachOnce();
        assertThat(loader.report().storageBytes())
            .isBetween(
                originals.bytes(), originals.bytes() + 8190 * loader.report().storageReads());
        assertThat(loader.report().rereadBytes()).isZero();
      }
    }
  }

  @Test
  void threads_that_ask_at_once_get_no_sample_twice() throws InterruptedException {
    Random random = new Random(Seeds.of("threads_that_ask_at_once_get_no_sample_twice"));
    for (int i = 0; i < Thorough.count(4, 60); i++) {
      try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS)) {
        for (int epoch = 0; epoch < 2; epoch++) {
          loader.setEpoch(epoch);
          askAtOnce(loader, requests(random, sample -> true, 6), 4).assertEachOnce();
        }
      }
    }
  }

  private static Received askAtOnce(AskedLoader loader, List<long[]> requests, int threads)
      throws InterruptedException {
    ConcurrentLinkedQueue<long[]> left = new ConcurrentLinkedQueue<>(requests);
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    Received all = new Received(originals);
    List<Thread> askers = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      askers.add(
          Thread.ofPlatform()
              .uncaughtExceptionHandler((_, thrown) -> failures.add(thrown))
              .start(
                  () -> {
                    Received own = new Received(originals);
                    for (long[] next = left.poll(); next != null; next = left.poll()) {
                      own.add(loader.get(next));
                    }
                    synchronized (all) {
                      all.places().addAll(own.places());
                    }
                  }));
    }
    for (Thread asker : askers) {
      asker.join();
    }
    assertThat(failures).isEmpty();
    return all;
  }

  @Test
  void an_interrupted_request_stops_waiting_and_the_next_epoch_is_whole() {
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS)) {
      Thread.currentThread().interrupt();
      Throwable thrown = catchThrowable(() -> loader.get(1, 2, 3).close());
      // Where everything is there already, nobody waits and nothing is interrupted.
      assertThat(Thread.interrupted()).isTrue();
      assertThat(thrown == null || thrown.getMessage().contains("interrupted")).isTrue();
      loader.setEpoch(1);
      ask(loader, requests(new Random(1), sample -> true, 10)).assertEachOnce();
    }
  }

  @Test
  void an_empty_set_refuses_every_index() {
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS, _ -> false)) {
      assertThat(loader.size()).isZero();
      assertFails(Kind.WRONG_CALL, () -> loader.get(0), "set of 0");
      loader.setEpoch(1);
      assertFails(Kind.WRONG_CALL, () -> loader.get(0), "set of 0");
    }
  }

  @Test
  void damage_in_a_redirected_batch_is_filled_and_flagged() {
    Path path = Trees.write(Trees.read(originals.path()), folder.resolve("filled"));
    Originals damaged = Originals.of(path);
    long bad = damaged.length(17) == 0 ? 18 : 17;
    damaged.flip(bad, 0);
    try (AskedLoader loader = AskedLoader.redirected(path, OPTIONS)) {
      for (int epoch = 0; epoch < 2; epoch++) {
        loader.setEpoch(epoch);
        Received received = new Received(damaged);
        for (long first = 0; first < SAMPLES; first += 20) {
          received.add(loader.get(LongStream.range(first, first + 20).toArray()));
        }
        received.assertEachOnce(sample -> sample != bad);
        assertThat(received.damaged()).isEqualTo(1);
        assertThat(loader.report().damaged()).isEqualTo(1);
      }
    }
    try (AskedLoader loader = AskedLoader.redirected(path, OPTIONS.withStrict(true))) {
      assertFails(
          Kind.DAMAGED, () -> loader.get(LongStream.range(0, SAMPLES).toArray()), damaged.key(bad));
    }
  }

  @Test
  void a_failed_epoch_says_so_until_another_is_set() {
    Path path = Trees.write(Trees.read(originals.path()), folder.resolve("failing"));
    Originals damaged = Originals.of(path);
    long bad = damaged.length(17) == 0 ? 18 : 17;
    damaged.flip(bad, 0);
    try (AskedLoader loader = AskedLoader.redirected(path, OPTIONS.withStrict(true))) {
      Received received = new Received(damaged);
      assertFails(
          Kind.DAMAGED,
          () -> {
            for (long i = 0; i < SAMPLES; i++) {
              received.add(loader.get(i));
            }
          },
          damaged.key(bad));
      received.assertNoneTwice();
      assertFails(Kind.ENVIRONMENT, () -> loader.get(SAMPLES - 1), "failed before");
      loader.setEpoch(1);
      assertFails(
          Kind.DAMAGED, () -> loader.get(LongStream.range(0, SAMPLES).toArray()), damaged.key(bad));
    }
  }

  /** One after the other, a request has no good sample of its own to show. */
  @Test
  void what_stands_in_for_a_damaged_sample_is_of_the_set() {
    Path path = Trees.write(Trees.read(originals.path()), folder.resolve("standing"));
    Originals damaged = Originals.of(path);
    LongPredicate isIn = sample -> sample % 10 == 3 && damaged.length(sample) > 0;
    long[] indices = LongStream.range(0, SAMPLES).filter(isIn).toArray();
    for (int i = 1; i < indices.length; i++) {
      damaged.flip(indices[i], 0); // but for the first
    }
    try (AskedLoader loader = AskedLoader.redirected(path, OPTIONS.withMaxDamage(1), isIn)) {
      Received received = new Received(damaged);
      for (long index : indices) {
        received.add(loader.get(index));
      }
      assertThat(samples(received)).containsOnly(indices[0]);
      received.assertEachOnce(sample -> sample == indices[0]);
      assertThat(received.damaged()).isEqualTo(indices.length - 1);
    }
  }
}
