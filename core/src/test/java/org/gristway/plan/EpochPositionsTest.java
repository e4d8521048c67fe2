package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class EpochPositionsTest {

  private static final int SAMPLES = 10_000;

  private static EpochPositions of(LongStream order) {
    EpochPositions positions = new EpochPositions(SAMPLES);
    order.forEach(positions::add);
    return positions;
  }

  private static EpochPositions shuffled(long key) {
    Permutation order = new Permutation(SAMPLES, key);
    return of(LongStream.range(0, SAMPLES).map(order::at));
  }

  @Test
  void a_sample_is_where_it_came() {
    try (EpochPositions positions = of(LongStream.of(7, 3))) {
      assertThat(positions.of(7)).isZero();
      assertThat(positions.of(3)).isEqualTo(1);
      assertThat(positions.of(4)).isEqualTo(EpochPositions.ABSENT);
    }
  }

  @Test
  void the_same_order_is_fully_correlated_and_its_reverse_the_other_way() {
    try (EpochPositions forward = of(LongStream.range(0, SAMPLES));
        EpochPositions backward = of(LongStream.range(0, SAMPLES).map(i -> SAMPLES - 1 - i))) {
      assertThat(forward.correlationWith(forward)).isCloseTo(1, within(1e-9));
      assertThat(forward.correlationWith(backward)).isCloseTo(-1, within(1e-9));
    }
  }

  @Test
  void shuffled_orders_are_not_correlated() {
    try (EpochPositions one = shuffled(1);
        EpochPositions other = shuffled(2)) {
      // Four standard deviations.
      assertThat(one.correlationWith(other)).isCloseTo(0, within(4 / Math.sqrt(SAMPLES)));
    }
  }

  @Test
  void samples_that_one_epoch_leaves_out_do_not_count() {
    try (EpochPositions all = of(LongStream.range(0, SAMPLES));
        EpochPositions half = of(LongStream.range(0, SAMPLES).filter(i -> i % 2 == 0));
        EpochPositions none = of(LongStream.empty())) {
      assertThat(all.correlationWith(half)).isCloseTo(1, within(1e-9));
      assertThat(all.correlationWith(none)).isZero();
    }
  }
}
