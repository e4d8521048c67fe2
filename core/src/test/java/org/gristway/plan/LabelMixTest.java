package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Objects;
import java.util.function.LongToIntFunction;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class LabelMixTest {

  private static final int SAMPLES = 100_000;
  private static final int BATCH = 100;
  private static final LongUnaryOperator SHUFFLED = new Permutation(SAMPLES, 1)::at;

  /** Ten classes, so many samples of each in a row. */
  private static LongToIntFunction classes(int inARow) {
    return sample -> (int) (sample / inARow % 10);
  }

  private static LabelMix.Report measure(LongUnaryOperator order, LongToIntFunction labels) {
    LabelMix mix = new LabelMix(LabelCounts.of(labels, SAMPLES));
    for (int first = 0; first < SAMPLES; first += BATCH) {
      long[][] ranks = new long[2][BATCH / 2];
      for (int i = 0; i < BATCH; i++) {
        ranks[i % 2][i / 2] = order.applyAsLong(first + i);
      }
      mix.add(ranks);
    }
    return Objects.requireNonNull(mix.report());
  }

  @Test
  void a_full_shuffle_is_as_chance_has_it() {
    LabelMix.Report report = measure(SHUFFLED, classes(1));
    assertThat(report.variance()).isCloseTo(1, within(0.05));
    // The expected entropy of 100 draws from 10 classes, to the second order.
    double expected = Math.log(10) / Math.log(2) - 9 / (2 * BATCH * Math.log(2));
    assertThat(report.entropy()).isCloseTo(expected, within(0.01));
  }

  @Test
  void classes_may_have_unequal_numbers() {
    LabelMix.Report report = measure(SHUFFLED, sample -> sample % 100 == 0 ? 7 : 3);
    assertThat(report.variance()).isCloseTo(1, within(0.1));
    assertThat(report.entropy()).isBetween(0.0, 0.1);
  }

  @Test
  void batches_of_one_class_are_as_bad_as_can_be() {
    LabelMix.Report report = measure(LongUnaryOperator.identity(), classes(BATCH));
    assertThat(report.entropy()).isZero();
    assertThat(report.variance()).isCloseTo(BATCH, within(0.5));
  }

  @Test
  void batches_with_equal_numbers_of_all_classes_have_no_variance() {
    LabelMix.Report report = measure(LongUnaryOperator.identity(), classes(1));
    assertThat(report.entropy()).isCloseTo(Math.log(10) / Math.log(2), within(1e-9));
    assertThat(report.variance()).isCloseTo(0, within(1e-9));
  }

  @Test
  void samples_without_a_label_do_not_count() {
    LongToIntFunction half = sample -> sample % 2 == 0 ? (int) (sample / 2 / BATCH % 10) : -1;
    LabelMix.Report report = measure(LongUnaryOperator.identity(), half);
    assertThat(report.entropy()).isZero();
    assertThat(report.variance()).isCloseTo(BATCH / 2.0, within(0.5));
  }

  @Test
  void a_short_batch_counts_by_its_samples() {
    LabelMix mix = new LabelMix(LabelCounts.of(classes(1), SAMPLES));
    mix.add(new long[][] {{0, 1, 2, 3, 4, 5, 6, 7}});
    mix.add(new long[][] {{8}, {}});
    LabelMix.Report report = Objects.requireNonNull(mix.report());
    assertThat(report.entropy()).isCloseTo(3 * 8 / 9.0, within(1e-9));
    // 8 of 10 classes are 0.2 from their share of the batch, 2 are 0.8; then 9 are 0.1 and one 0.9.
    double squares = 8 * 0.04 + 2 * 0.64 + 9 * 0.01 + 0.81;
    assertThat(report.variance()).isCloseTo(squares / (9 * 0.9), within(1e-3));
  }

  @Test
  void an_epoch_of_one_batch_is_as_chance_has_it() {
    LabelMix mix = new LabelMix(LabelCounts.of(classes(1), 4));
    mix.add(new long[][] {{0, 1, 2, 3}});
    assertThat(mix.report()).isEqualTo(new LabelMix.Report(2, 1));
  }

  @Test
  void without_two_labels_there_is_no_mix() {
    for (LongToIntFunction labels :
        new LongToIntFunction[] {
          _ -> -1,
          _ -> 3,
          sample -> sample % 2 == 0 ? 3 : -1,
          sample -> LabelCounts.MOST - 5 + (int) sample
        }) {
      LabelCounts counts = LabelCounts.of(labels, 10);
      LabelMix mix = new LabelMix(counts);
      mix.add(new long[][] {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
      assertThat(counts.canMix()).isFalse();
      assertThat(mix.report()).isNull();
    }
    assertThat(LabelCounts.of(_ -> 3, 0).canMix()).isFalse();
    assertThat(LabelCounts.of(sample -> LabelCounts.MOST - 5 + (int) sample, 5).canMix()).isTrue();
  }
}
