package org.gristway.testing;

/**
 * Whether this is the long run ({@code ./build -Pthorough}), where tests that otherwise try a
 * sample of their cases try all of them.
 */
public final class Thorough {
  private Thorough() {}

  /** True in the long run. */
  public static boolean on() {
    return Boolean.getBoolean("gristway.thorough");
  }

  /** How many cases to try. */
  public static int count(int sample, int full) {
    return on() ? full : sample;
  }
}
