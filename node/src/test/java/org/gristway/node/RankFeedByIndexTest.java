package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Samples asked for by index, any number at once. */
class RankFeedByIndexTest extends RankFeedTesting {

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
}
