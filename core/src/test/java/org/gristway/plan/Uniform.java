package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collection;

/** Tells whether outcomes are about equally frequent. */
final class Uniform {

  private Uniform() {}

  /** Fails if chi-square is six standard deviations above what chance gives. */
  static void assertUniform(String what, Collection<Integer> times, int outcomes) {
    double expected = times.stream().mapToInt(each -> each).sum() / (double) outcomes;
    double chiSquare =
        times.stream().mapToDouble(each -> (each - expected) * (each - expected) / expected).sum()
            + (outcomes - times.size()) * expected;
    int freedom = outcomes - 1;
    assertThat(chiSquare).as(what).isLessThan(freedom + 6 * Math.sqrt(2.0 * freedom) + 6);
  }
}
