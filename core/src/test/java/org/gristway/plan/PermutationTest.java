package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class PermutationTest {

  private static Permutation of(long size, long number) {
    return new Permutation(size, Draws.key(number));
  }

  @Test
  void every_element_comes_once() {
    for (int size = 1; size <= 2000; size++) {
      assertComesOnce(size);
    }
    assertComesOnce(65_535);
    assertComesOnce(65_536);
    assertComesOnce(65_537);
    assertComesOnce(1_000_003);
  }

  private static void assertComesOnce(int size) {
    Permutation permutation = of(size, size);
    BitSet seen = new BitSet(size);
    for (int i = 0; i < size; i++) {
      seen.set((int) permutation.at(i));
    }
    assertThat(seen.cardinality()).isEqualTo(size);
    assertThat(seen.length()).isEqualTo(size);
  }

  @Test
  void elements_of_a_huge_permutation_are_distinct_and_in_range() {
    for (long size : new long[] {1L << 40, (1L << 40) + 1, 3L << 50, Long.MAX_VALUE}) {
      Permutation permutation = of(size, 1);
      Set<Long> seen = new HashSet<>();
      for (long i = 0; i < 10_000; i++) {
        long element = permutation.at(i % 2 == 0 ? i : size - i);
        assertThat(element >= 0 && element < size).as("%d", element).isTrue();
        seen.add(element);
      }
      assertThat(seen).hasSize(10_000);
    }
  }

  @Test
  void all_orders_of_a_few_are_about_equally_frequent() {
    int orders = 1;
    for (int size = 2; size <= 6; size++) {
      orders *= size;
      Map<Long, Integer> times = new HashMap<>();
      int keys = 200 * orders;
      for (int key = 0; key < keys; key++) {
        Permutation permutation = of(size, key);
        long order = 0;
        for (int i = 0; i < size; i++) {
          order = 10 * order + permutation.at(i);
        }
        times.merge(order, 1, Integer::sum);
      }
      assertThat(times).hasSize(orders);
      Uniform.assertUniform("orders of " + size, times.values(), orders);
    }
  }

  @Test
  void an_element_is_as_likely_at_any_place() {
    for (int size : new int[] {9, 16, 1000}) {
      int buckets = Math.min(size, 20);
      for (int element : new int[] {0, 1, size / 2, size - 1}) {
        Integer[] times = new Integer[buckets];
        Arrays.fill(times, 0);
        for (int key = 0; key < 1000 * buckets; key++) {
          times[(int) (of(size, key).at(element) * buckets / size)]++;
        }
        Uniform.assertUniform(
            "places of " + element + " among " + size, Arrays.asList(times), buckets);
      }
    }
  }

  @Test
  void two_elements_are_as_likely_at_any_two_places() {
    for (int size : new int[] {5, 7, 9, 12, 16, 24, 64}) {
      Map<Long, Integer> times = new HashMap<>();
      for (int key = 0; key < 20_000 + 20 * size * size; key++) {
        Permutation permutation = of(size, key);
        times.merge(permutation.at(0) * size + permutation.at(1), 1, Integer::sum);
      }
      Uniform.assertUniform("places of two among " + size, times.values(), size * (size - 1));
    }
  }

  @Test
  void neighbours_do_not_stay_neighbours() {
    int size = 1000;
    int together = 0;
    for (int key = 0; key < 200; key++) {
      Permutation permutation = of(size, key);
      for (int i = 0; i + 1 < size; i++) {
        if (Math.abs(permutation.at(i) - permutation.at(i + 1)) == 1) {
          together++;
        }
      }
    }
    // By chance 2 a permutation: 400 give or take 20.
    assertThat(together).isBetween(300, 500);
  }
}
