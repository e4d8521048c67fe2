package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.Random;
import org.gristway.read.ReadCounter;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Test;

/** Batches of one client: by number, in whatever order it asks for them. */
class RankFeedTest extends RankFeedTesting {

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
