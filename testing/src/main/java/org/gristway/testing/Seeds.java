package org.gristway.testing;

import java.util.concurrent.ThreadLocalRandom;

/** Seeds for tests on random input: new ones each time, and repeatable when one has failed. */
public final class Seeds {
  private Seeds() {}

  /**
   * A seed, which is the system property {@code gristway.seed} if that is set.
   *
   * <p>It is printed always, not on failure only: a test that hangs or crashes its JVM has no other
   * way to tell.
   *
   * @param testName what the printed line calls the test
   */
  public static long of(String testName) {
    Long given = Long.getLong("gristway.seed");
    long seed = given != null ? given : ThreadLocalRandom.current().nextLong(Long.MAX_VALUE);
    System.out.printf("%s: seed %d (again: ./build -Dgristway.seed=%d)%n", testName, seed, seed);
    return seed;
  }
}
