package org.gristway.plan;

/**
 * A random permutation of 0 to n - 1. A short one is a shuffled table; a long one has none: its
 * i-th element is computed from i and a key in some nanoseconds, whatever n is.
 *
 * <p>The long kind is a Feistel network over the smallest power of two that holds n, walked until
 * it lands below n (fewer than two steps on average). What is wanted is an order without pattern,
 * not secrecy; but over a few bits such a network prefers some orders, hence the table.
 */
public final class Permutation {

  private static final int LARGEST_TABLE = 256;
  private static final int ROUNDS = 8;
  private static final long ROUND_STEP = 0xD1B54A32D192ED03L;

  private final long size;
  private final long key;
  private final char[] table; // empty if the network is used
  private final int lowBits;
  private final long lowMask;
  private final long highMask;

  public Permutation(long size, long key) {
    this.size = size;
    this.key = key;
    this.table = size <= LARGEST_TABLE ? shuffled((int) size, key) : new char[0];
    int bits = 64 - Long.numberOfLeadingZeros(Math.max(1, size - 1));
    this.lowBits = bits / 2;
    this.lowMask = (1L << lowBits) - 1;
    this.highMask = (1L << (bits - lowBits)) - 1;
  }

  private static char[] shuffled(int size, long key) {
    char[] table = new char[size];
    Draws draws = new Draws(key);
    for (int i = 0; i < size; i++) {
      int other = (int) draws.below(i + 1);
      table[i] = table[other];
      table[other] = (char) i;
    }
    return table;
  }

  /** The i-th element. */
  public long at(long i) {
    if (size <= LARGEST_TABLE) {
      return table[(int) i];
    }
    long value = i;
    do {
      value = shuffle(value);
    } while (value >= size);
    return value;
  }

  /** Where an element is: the other way round. */
  public long indexOf(long element) {
    if (size <= LARGEST_TABLE) {
      for (int i = 0; ; i++) {
        if (table[i] == element) {
          return i;
        }
      }
    }
    long value = element;
    do {
      value = unshuffle(value);
    } while (value >= size);
    return value;
  }

  private long unshuffle(long value) {
    long low = value & lowMask;
    long high = value >>> lowBits;
    for (int i = ROUNDS - 2; i >= 0; i -= 2) {
      long round = key + i * ROUND_STEP;
      high ^= scramble(low + round + ROUND_STEP) & highMask;
      low ^= scramble(high + round) & lowMask;
    }
    return (high << lowBits) | low;
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
