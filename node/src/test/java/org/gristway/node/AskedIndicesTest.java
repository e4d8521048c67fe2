package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.gristway.Failure;
import org.gristway.plan.SampleSet;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class AskedIndicesTest {

  private static final int SAMPLES = 200;

  private final List<String> notices = new ArrayList<>();
  private final Random random = new Random(Seeds.of("AskedIndicesTest"));

  private AskedIndices all(int ranks) {
    return new AskedIndices(SampleSet.all(SAMPLES), SAMPLES, ranks, notices::add);
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
    AskedIndices asked = new AskedIndices(even, SAMPLES, 1, notices::add);
    assertRefused(asked, 0, 1, "index 3 is not among the 100", 0, 2, 3);
    assertRefused(asked, 0, 1, "index 200 is not among", SAMPLES);
    assertRefused(asked, 0, 1, "index -1 is not among", -1);
    asked.ask(0, 1, new long[] {0, 2});
  }

  private static void askOneByOne(AskedIndices asked, long iteration, long from, long to) {
    for (long index = from; index < to; index++) {
      asked.ask(0, iteration, new long[] {index});
    }
  }

  /** A DistributedSampler repeats fewer indices than there are ranks, to give each as many. */
  @Test
  void as_many_repeats_as_padding_needs_are_allowed_and_no_more() {
    AskedIndices asked = all(4);
    askOneByOne(asked, 1, 0, 200);
    askOneByOne(asked, 1, 0, 3);
    assertRefused(asked, 0, 1, "index 3 was asked for before", 3);
    askOneByOne(asked, 2, 0, 200);
    askOneByOne(asked, 2, 0, 3);
  }

  /** Accelerate fills the last batch of every rank. */
  @Test
  void as_many_repeats_as_fill_last_batches_are_allowed_and_no_more() {
    AskedIndices asked = all(2);
    for (long from = 0; from < 200; from += 10) {
      asked.ask(0, 1, range(from, from + 10));
    }
    asked.ask(0, 1, range(0, 10));
    asked.ask(0, 1, range(10, 19));
    assertRefused(asked, 0, 1, "index 19 was asked for before", 19);
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
    askOneByOne(asked, 1, 0, 100);
    askOneByOne(asked, 2, 0, 50);
    askOneByOne(asked, 1, 100, 200);
    askOneByOne(asked, 2, 50, 200);
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

  @Test
  void a_request_that_is_taken_back_may_be_made_again() {
    AskedIndices asked = all(1);
    AskedIndices.Noted noted = asked.ask(0, 1, range(0, 100));
    asked.takeBack(noted);
    asked.takeBack(noted); // has nothing left to take back
    asked.ask(0, 1, range(0, 200));
    assertRefused(asked, 0, 1, "asked for before", 0);
  }

  @Test
  void what_is_taken_back_leaves_earlier_requests_as_they_are() {
    AskedIndices asked = all(2);
    asked.ask(0, 1, new long[] {5});
    asked.takeBack(asked.ask(0, 1, new long[] {5})); // a repeat, which is given back with it
    asked.ask(0, 1, new long[] {5});
    assertRefused(asked, 0, 1, "index 5 was asked for before", 5);
  }

  @Test
  void a_request_that_is_refused_half_way_leaves_nothing_behind() {
    AskedIndices asked = all(1);
    asked.ask(0, 1, new long[] {50});
    assertRefused(asked, 0, 1, "index 50 was asked for before", 48, 49, 50, 51);
    asked.ask(0, 1, new long[] {48, 49, 51});
    assertRefused(asked, 0, 1, "index 50 was asked for before", 50);
  }

  /** Asks as a sampler does, ten at a time. */
  private static void iterate(AskedIndices asked, long iteration, List<Long> indices) {
    for (int i = 0; i < indices.size(); i += 10) {
      List<Long> some = indices.subList(i, Math.min(i + 10, indices.size()));
      asked.ask(iteration, iteration, some.stream().mapToLong(Long::longValue).toArray());
    }
  }

  private List<Long> shuffled(long from, long to) {
    List<Long> indices = new ArrayList<>(LongStream.range(from, to).boxed().toList());
    Collections.shuffle(indices, random);
    return indices;
  }

  @Test
  void who_draws_from_the_same_part_again_is_told_once() {
    AskedIndices asked = all(1);
    for (long epoch = 0; epoch < 5; epoch++) {
      iterate(asked, epoch, shuffled(0, 160));
    }
    assertThat(notices)
        .hasSize(1)
        .first()
        .asString()
        .contains("160 of 200", "the same", "indices=");
  }

  @Test
  void who_draws_from_two_parts_in_turn_is_told() {
    AskedIndices asked = all(1);
    iterate(asked, 0, shuffled(0, 160));
    iterate(asked, 1, shuffled(160, 200));
    iterate(asked, 2, shuffled(0, 160));
    assertThat(notices).hasSize(1).first().asString().contains("160 of 200", "none of these");
  }

  @Test
  void who_draws_from_everything_is_told_nothing() {
    AskedIndices asked = all(1);
    for (long epoch = 0; epoch < 200; epoch++) {
      List<Long> order = shuffled(0, 200);
      // Whole; or broken off anywhere; or without what does not fill the last batch.
      int most = epoch % 3 == 0 ? 200 : epoch % 3 == 1 ? random.nextInt(200) : 191;
      iterate(asked, epoch, order.subList(0, most));
    }
    for (long epoch = 200; epoch < 205; epoch++) {
      iterate(asked, epoch, LongStream.range(0, 191).boxed().toList());
    }
    assertThat(notices).isEmpty();
  }
}
