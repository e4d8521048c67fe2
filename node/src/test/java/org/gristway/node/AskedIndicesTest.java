package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.stream.LongStream;
import org.gristway.Failure;
import org.gristway.plan.SampleSet;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class AskedIndicesTest {

  private static final int SAMPLES = 200;

  private static AskedIndices all(int ranks) {
    return new AskedIndices(SampleSet.all(SAMPLES), SAMPLES, ranks);
  }

  private static long[] range(long from, long to) {
    return LongStream.range(from, to).toArray();
  }

  private static void assertRefused(
      AskedIndices asked, long epoch, long iteration, String named, long... indices) {
    assertThatThrownBy(() -> asked.ask(epoch, iteration, indices))
        .isInstanceOf(Failure.class)
        .hasMessageContaining(named);
  }

  @Test
  void each_index_may_be_asked_for_once_in_an_epoch() {
    AskedIndices asked = all(1);
    asked.ask(0, 1, range(64, 200));
    asked.ask(0, 1, range(0, 64));
    for (long index : new long[] {0, 63, 64, 127, 199}) {
      assertRefused(asked, 0, 1, "index " + index + " was asked for before in epoch 0", index);
    }
    asked.ask(1, 2, range(0, 200));
  }

  @Test
  void within_one_request_too() {
    assertRefused(all(1), 3, 1, "index 7 was asked for before in epoch 3", 5, 6, 7, 7);
  }

  @Test
  void an_index_outside_the_set_is_refused_and_nothing_of_its_request_noted() {
    SampleSet even = SampleSet.where(SAMPLES, i -> i % 2 == 0);
    AskedIndices asked = new AskedIndices(even, SAMPLES, 1);
    assertRefused(asked, 0, 1, "index 3 is not among the 100", 0, 2, 3);
    assertRefused(asked, 0, 1, "index 200 is not among", SAMPLES);
    assertRefused(asked, 0, 1, "index -1 is not among", -1);
    asked.ask(0, 1, new long[] {0, 2});
  }

  /** A DistributedSampler repeats fewer indices than there are ranks, to give each as many. */
  @Test
  void as_many_repeats_as_padding_needs_are_allowed_and_no_more() {
    AskedIndices asked = all(4);
    asked.ask(0, 1, range(0, 200));
    asked.ask(0, 1, new long[] {0, 1});
    asked.ask(0, 1, new long[] {2});
    assertRefused(asked, 0, 1, "index 3 was asked for before", 3);
    asked.ask(1, 2, range(0, 200));
    asked.ask(1, 2, new long[] {0, 1, 2});
  }

  @Test
  void an_epoch_that_is_iterated_over_again_may_ask_for_all_again() {
    AskedIndices asked = all(1);
    asked.ask(5, 1, range(0, 100));
    asked.ask(5, 2, range(0, 200));
    assertRefused(asked, 5, 2, "asked for before", 0);
  }

  @Test
  void ranks_may_be_an_iteration_apart() {
    AskedIndices asked = all(2);
    asked.ask(0, 1, range(0, 100));
    asked.ask(1, 2, range(0, 50));
    asked.ask(0, 1, range(100, 200));
    asked.ask(1, 2, range(50, 200));
    asked.ask(0, 1, new long[] {0}); // padding
    assertRefused(asked, 0, 1, "asked for before", 1);
  }

  @Test
  void what_is_long_over_is_forgotten() {
    AskedIndices asked = all(1);
    for (long epoch = 0; epoch < 1000; epoch++) {
      asked.ask(epoch, epoch + 1, range(0, 200)); // its memory does not grow
    }
    asked.ask(0, 1, range(0, 200));
  }
}
