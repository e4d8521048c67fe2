package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.Random;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class SampleSetTest {

  @Test
  void a_set_of_some_samples_is_like_its_model() {
    Random random = new Random(Seeds.of("a_set_of_some_samples_is_like_its_model"));
    for (int i = 0; i < Thorough.count(200, 5000); i++) {
      int universe = random.nextInt(3000);
      BitSet model = someOf(random, universe);
      assertLike(SampleSet.where(universe, sample -> model.get((int) sample)), universe, model);
    }
  }

  @Test
  void a_set_of_all_samples_is_like_its_model() {
    for (int universe : new int[] {0, 1, 63, 64, 65, 511, 512, 513, 1024}) {
      BitSet model = new BitSet();
      model.set(0, universe);
      assertLike(SampleSet.all(universe), universe, model);
      assertThat(SampleSet.all(universe).isAll()).isTrue();
      assertLike(SampleSet.where(universe, sample -> true), universe, model);
    }
  }

  @Test
  void what_is_taken_out_is_not_in_it() {
    Random random = new Random(Seeds.of("what_is_taken_out_is_not_in_it"));
    for (int i = 0; i < Thorough.count(200, 5000); i++) {
      int universe = random.nextInt(1500);
      BitSet model = someOf(random, universe);
      SampleSet set = SampleSet.where(universe, sample -> model.get((int) sample));
      if (random.nextBoolean()) {
        set = SampleSet.all(universe);
        model.set(0, universe);
      }
      for (int round = 0; round < 3; round++) {
        BitSet taken = someOf(random, universe);
        model.andNot(taken);
        set = set.without(words(taken, universe));
        assertLike(set, universe, model);
      }
    }
  }

  /** Samples one by one, or in long runs that leave whole blocks empty or full. */
  private static BitSet someOf(Random random, int universe) {
    BitSet some = new BitSet();
    double share = random.nextDouble();
    int run = random.nextBoolean() ? 1 : 1 + random.nextInt(1500);
    for (int first = 0; first < universe; first += run) {
      if (random.nextDouble() < share) {
        some.set(first, Math.min(universe, first + run));
      }
    }
    return some;
  }

  private static long[] words(BitSet set, int universe) {
    long[] words = new long[Math.max(1, (universe + 63) / 64)];
    set.stream().forEach(sample -> words[sample >>> 6] |= 1L << sample);
    return words;
  }

  private static void assertLike(SampleSet set, int universe, BitSet model) {
    int rank = 0;
    for (int sample = 0; sample < universe; sample++) {
      if (set.rank(sample) != rank || set.contains(sample) != model.get(sample)) {
        assertThat(set.rank(sample)).as("rank of %d in %s", sample, model).isEqualTo(rank);
        assertThat(set.contains(sample)).as("%d in %s", sample, model).isEqualTo(model.get(sample));
      }
      if (model.get(sample)) {
        if (set.nth(rank) != sample) {
          assertThat(set.nth(rank)).as("%d of %s", rank, model).isEqualTo(sample);
        }
        rank++;
      }
    }
    assertThat(set.count()).isEqualTo(rank);
    assertThat(set.rank(universe)).isEqualTo(rank);
    assertThat(set.contains(-1)).isFalse();
    assertThat(set.contains(universe)).isFalse();
  }
}
