package org.gristway.plan;

/**
 * A random permutation of 0 to n - 1 without a table: its i-th element is computed from i and a key
 * in a few nanoseconds, whatever n is.
 *
 * <p>It is a Feistel network over the smallest power of two that holds n, walked until it lands
 * below n (fewer than two steps on average). What is wanted is an order without pattern, not
 * secrecy.
 */
public final class Permutation {

  private static final int ROUNDS = 6;
  private static final long ROUND_STEP = 0xD1B54A32D192ED03L;

  private final long size;
  private final long key;
  private final int lowBits;
  private final long lowMask;
  private final long highMask;

  public Permutation(long size, long key) {
    this.size = size;
    this.key = key;
    int bits = Math.max(2, 64 - Long.numberOfLeadingZeros(Math.max(0, size - 1)));
    this.lowBits = bits / 2;
    this.lowMask = (1L << lowBits) - 1;
    this.highMask = (1L << (bits - lowBits)) - 1;
  }

  /** The i-th element. */
  public long at(long i) {
    long value = i;
    do {
      value = shuffle(value);
    } while (value >= size);
    return value;
  }

  private long shuffle(long value) {
    long low = value & lowMask;
    long high = value >>> lowBits;
    long round = key;
    for (int i = 0; i < ROUNDS; i += 2) {
      low ^= scramble(high + round) & lowMask;
      high ^= scramble(low + round + ROUND_STEP) & highMask;
      round += 2 * ROUND_STEP;
    }
    return (high << lowBits) | low;
  }

  private static long scramble(long value) {
    long z = (value ^ (value >>> 32)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 29)) * 0x94D049BB133111EBL;
    return z >>> 32;
  }
}
