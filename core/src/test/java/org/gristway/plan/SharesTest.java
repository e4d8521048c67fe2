package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class SharesTest {

  @Test
  void shares_are_what_dealing_one_by_one_gives() {
    for (int samples = 0; samples <= 60; samples++) {
      for (int ranks = 1; ranks <= 5; ranks++) {
        for (int batch = 1; batch <= 6; batch++) {
          for (Tail tail : Tail.values()) {
            assertLikeDealt(samples, ranks, batch, tail);
          }
        }
      }
    }
  }

  private static void assertLikeDealt(int samples, int ranks, int batch, Tail tail) {
    Shares shares = new Shares(samples, ranks, batch, tail);
    String name = "%d samples, %d ranks, batches of %d, %s".formatted(samples, ranks, batch, tail);
    long[] of = new long[ranks];
    int next = 0; // request
    int step = 0;
    for (; samples - next >= (tail == Tail.DROP ? ranks * batch : 1); step++) {
      int[] dealt = deal(Math.min(samples - next, ranks * batch), ranks);
      for (int rank = 0; rank < ranks; rank++) {
        assertThat(shares.firstRequest(rank, step)).as(name).isEqualTo(next);
        assertThat(shares.fresh(rank, step)).as(name).isEqualTo(dealt[rank]);
        int places = tail == Tail.PAD ? batch : Math.max(1, dealt[rank]);
        assertThat(shares.places(rank, step)).as(name).isEqualTo(places);
        of[rank] += dealt[rank];
        next += dealt[rank];
      }
    }
    assertThat(shares.steps()).as(name).isEqualTo(step);
    assertThat(shares.samples()).as(name).isEqualTo(next);
    for (int rank = 0; rank < ranks; rank++) {
      assertThat(shares.of(rank)).as(name).isEqualTo(of[rank]);
      assertThat(shares.before(rank)).as(name).isEqualTo(Arrays.stream(of, 0, rank).sum());
    }
  }

  /** How many of a step's samples each rank gets, if they get one by turns. */
  private static int[] deal(int samples, int ranks) {
    int[] dealt = new int[ranks];
    for (int i = 0; i < samples; i++) {
      dealt[i % ranks]++;
    }
    return dealt;
  }

  @Test
  void shares_of_more_samples_than_an_int_counts_are_right() {
    long samples = 3_000_000_000_001L;
    Shares shares = new Shares(samples, 1000, 4096, Tail.SHORT);
    assertThat(shares.before(999) + shares.of(999)).isEqualTo(samples);
    assertThat(shares.firstRequest(999, shares.steps() - 2))
        .isEqualTo((shares.steps() - 1) * 4_096_000 - 4096);
    assertThat(shares.steps()).isEqualTo(Math.ceilDiv(samples, 4_096_000L));
  }
}
