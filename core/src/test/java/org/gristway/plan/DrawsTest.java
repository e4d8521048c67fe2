package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class DrawsTest {

  @Test
  void draws_are_below_their_bound_and_uniform() {
    for (int bound : new int[] {1, 2, 3, 10, 1000}) {
      Draws draws = new Draws(Draws.key(bound));
      Integer[] times = new Integer[bound];
      Arrays.fill(times, 0);
      for (int i = 0; i < 100 * bound; i++) {
        times[(int) draws.below(bound)]++;
      }
      Uniform.assertUniform("draws below " + bound, Arrays.asList(times), bound);
    }
    Draws draws = new Draws(1);
    for (int i = 0; i < 1000; i++) {
      assertThat(draws.below(Long.MAX_VALUE)).isNotNegative();
    }
  }

  @Test
  void draws_one_after_the_other_do_not_depend_on_each_other() {
    Draws draws = new Draws(7);
    Integer[] times = new Integer[100];
    Arrays.fill(times, 0);
    int last = (int) draws.below(10);
    for (int i = 0; i < 100_000; i++) {
      int next = (int) draws.below(10);
      times[10 * last + next]++;
      last = next;
    }
    Uniform.assertUniform("pairs of draws", Arrays.asList(times), 100);
  }

  @Test
  void every_bit_of_every_part_changes_half_of_a_key() {
    long[] parts = {0, 3, -1};
    long key = Draws.key(parts);
    for (int part = 0; part < parts.length; part++) {
      double changed = 0;
      for (int bit = 0; bit < 64; bit++) {
        long[] other = parts.clone();
        other[part] ^= 1L << bit;
        changed += Long.bitCount(key ^ Draws.key(other));
      }
      assertThat(changed / 64).isBetween(29.0, 35.0);
    }
  }

  @Test
  void parts_at_another_place_or_more_of_them_make_another_key() {
    Set<Long> keys = new HashSet<>();
    for (long i = 0; i < 100; i++) {
      keys.add(Draws.key(i));
      for (long j = 0; j < 100; j++) {
        keys.add(Draws.key(i, j));
        keys.add(Draws.key(i, j, 0));
      }
    }
    assertThat(keys).hasSize(100 + 100 * 100 * 2);
  }

  /** Orders hang on these: with others, the plan version of every policy must be raised. */
  @Test
  void the_numbers_are_those_of_every_release() {
    long key = Draws.key(1, 2, 3);
    Draws draws = new Draws(key);
    assertThat(new long[] {key, draws.below(1000), draws.below(1000), draws.below(1L << 62)})
        .containsExactly(-5603024755745986668L, 108, 314, 2852655444325206009L);
  }
}
