package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import org.gristway.Failure.Kind;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class PlanSettingsTest {

  private static PlanSettings of(int batch, long memory, long extent) {
    return new PlanSettings("redirect", batch, memory, extent, Tail.SHORT);
  }

  @Test
  void a_rank_has_the_frames_that_its_memory_holds() {
    assertThat(of(1, 10 * 4096, 4096).frames()).isEqualTo(10);
    assertThat(of(1, 10 * 4096 - 1, 4096).frames()).isEqualTo(9);
    assertThat(of(1, 0, 4096).frames()).isZero();
    assertThat(of(1, Long.MAX_VALUE, 4096).frames()).isPositive();
  }

  @Test
  void settings_that_cannot_be_are_refused() {
    assertFails(Kind.WRONG_CALL, () -> of(0, 1 << 20, 4096), "batch", "0");
    for (long extent : new long[] {0, -4096, 4095, 4097, 1, (1L << 30) + 4096}) {
      assertFails(Kind.WRONG_CALL, () -> of(1, 1 << 20, extent), "extent", Long.toString(extent));
    }
    assertThat(of(1, 0, 1 << 30).extentBytes()).isEqualTo(1 << 30);
  }

  @Test
  void extents_are_smaller_where_little_memory_would_hold_too_few() {
    assertThat(PlanSettings.autoExtent(1L << 40)).isEqualTo(1 << 20);
    assertThat(PlanSettings.autoExtent(128 << 20)).isEqualTo(1 << 20);
    assertThat(PlanSettings.autoExtent((128 << 20) - 1)).isEqualTo(512 << 10);
    assertThat(PlanSettings.autoExtent((64 << 20) - 1)).isEqualTo(256 << 10);
    assertThat(PlanSettings.autoExtent(0)).isEqualTo(256 << 10);
  }
}
