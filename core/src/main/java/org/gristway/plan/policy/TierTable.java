package org.gristway.plan.policy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.gristway.os.PrivateMemory;
import org.gristway.plan.Caching;
import org.gristway.plan.SampleLayout;

/**
 * Where samples are kept in a stretch of epochs: for every sample and epoch, the tier in which the
 * rank that gets it then keeps it, until that rank gets it again or the stretch ends.
 *
 * <p>It costs 8 bytes a sample, outside the heap: a number with a digit for each epoch, of three
 * values, and beside it a byte for whoever fills the table. That is why a stretch has 32 epochs at
 * most. For any thread, once it is filled.
 */
final class TierTable {

  static final int MOST_EPOCHS = Caching.MOST_EPOCHS;

  private static final int NOT_KEPT = SampleLane.NOT_KEPT;
  private static final int VALUES = 3; // of a digit
  private static final int NOTE_AT = 56; // 32 digits take 51 bits
  private static final long[] UNITS = units(); // by epoch

  private final Accesses accesses;
  private final MemorySegment table;

  /** Nothing is kept. */
  TierTable(long samples, Accesses accesses) {
    this.accesses = accesses;
    this.table = PrivateMemory.table(8 * samples);
  }

  private static long[] units() {
    long[] units = new long[MOST_EPOCHS + 1];
    units[0] = 1;
    for (int epoch = 1; epoch <= MOST_EPOCHS; epoch++) {
      units[epoch] = VALUES * units[epoch - 1];
    }
    return units;
  }

  /** Has whoever gets a sample in an epoch keep it in a tier from then on. */
  void keep(long sample, int epoch, int tier) {
    long change = (long) tier - tier(digits(sample), epoch);
    set(sample, entry(sample) + change * UNITS[epoch]);
  }

  /** All that is known of a sample: for {@link #tier} and {@link #before}. */
  long digits(long sample) {
    return entry(sample) & ((1L << NOTE_AT) - 1);
  }

  /** What was noted of a sample; 0 at first. */
  int note(long sample) {
    return (int) (entry(sample) >>> NOTE_AT);
  }

  /** Notes something of a sample, of 8 bits. */
  void note(long sample, int value) {
    set(sample, (long) value << NOTE_AT | digits(sample));
  }

  private long entry(long sample) {
    return table.getAtIndex(ValueLayout.JAVA_LONG, sample);
  }

  private void set(long sample, long entry) {
    table.setAtIndex(ValueLayout.JAVA_LONG, sample, entry);
  }

  /** The tier in which whoever gets the sample in an epoch of the stretch keeps it. */
  static int tier(long digits, int epoch) {
    return (int) (digits / UNITS[epoch] % VALUES) + NOT_KEPT;
  }

  /** What is known of the epochs before one; 0 if nobody keeps the sample in any of them. */
  static long before(long digits, int epoch) {
    return digits % UNITS[epoch];
  }

  /**
   * What all ranks keep in memory when the first few epochs of the stretch are over.
   *
   * @param layout of the samples; a table may outlive the one that it was made for
   */
  long bytesInMemory(SampleLayout layout, int epochs) {
    long sum = 0;
    int[] seen = new int[MOST_EPOCHS];
    for (long sample = 0; epochs > 0 && sample < layout.sampleCount(); sample++) {
      if (before(digits(sample), epochs) != 0) {
        sum += keepersInMemory(sample, epochs, seen) * layout.length(sample);
      }
    }
    return sum;
  }

  /** The ranks that have kept a sample in memory when they got it last. */
  private long keepersInMemory(long sample, int epochs, int[] seen) {
    int ranks = 0;
    long keepers = 0;
    for (int epoch = epochs - 1; epoch >= 0; epoch--) {
      int rank = rank(sample, epoch);
      if (rank != Accesses.NOBODY
          && Arrays.stream(seen, 0, ranks).noneMatch(each -> each == rank)) {
        seen[ranks++] = rank;
        keepers += tier(digits(sample), epoch) == Caching.MEMORY ? 1 : 0;
      }
    }
    return keepers;
  }

  /** Who gets a sample in an epoch of the stretch. */
  int rank(long sample, int epoch) {
    return accesses.rank(sample, epoch);
  }
}
