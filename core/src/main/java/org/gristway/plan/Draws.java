package org.gristway.plan;

/**
 * The random numbers of plans: a function of the key alone, the same on every machine and in every
 * release. (The JDK's generators promise neither.) The mixing function is the finalizer of
 * SplitMix64 (Steele, Lea and Flood, 2014).
 */
public final class Draws {

  private static final long GOLDEN = 0x9E3779B97F4A7C15L;

  private long state;

  public Draws(long key) {
    this.state = key;
  }

  /** A key made of several numbers, each of which changes it wholly. */
  public static long key(long... parts) {
    long key = GOLDEN;
    for (long part : parts) {
      key = mix(key + GOLDEN + mix(part));
    }
    return key;
  }

  /** Spreads every bit of a number over all of the result. */
  static long mix(long value) {
    long z = value;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  /** A number from 0 to {@code bound - 1}. */
  public long below(long bound) {
    // The high word of the product: its bias, bound / 2^64, is nothing that an epoch could show.
    state += GOLDEN;
    return Math.unsignedMultiplyHigh(mix(state), bound);
  }
}
