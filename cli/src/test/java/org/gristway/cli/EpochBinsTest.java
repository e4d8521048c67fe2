package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class EpochBinsTest {

  @Test
  void every_stretch_has_steps_in_their_order() {
    for (int steps : new int[] {1, 2, 7, 200, 201, 202, 12_345}) {
      EpochBins bins = new EpochBins(steps);
      assertThat(bins.count()).isEqualTo(Math.clamp(steps - 1, 1, 200));
      assertThat(IntStream.range(0, steps).map(bins::of).distinct().toArray())
          .isEqualTo(IntStream.range(0, bins.count()).toArray());
    }
  }

  @Test
  void the_last_step_goes_with_the_one_before_it() {
    assertThat(IntStream.range(0, 4).map(new EpochBins(4)::of)).containsExactly(0, 1, 2, 2);
  }

  @Test
  void a_curve_goes_from_the_start_of_the_epoch_to_its_end() {
    Points levels = new EpochBins(5).levels(new double[] {5, 6, 7, 8});
    assertThat(levels.xs()).containsExactly(0, 25, 25, 50, 50, 75, 75, 100);
    assertThat(levels.ys()).containsExactly(5, 5, 6, 6, 7, 7, 8, 8);
    assertThat(new EpochBins(0).levels(new double[0]).xs()).isEmpty();
  }
}
