package org.gristway.plan;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * Measures how random an epoch's order is, from the samples of its batches. For one thread.
 *
 * <p>The <b>mate ratio</b> is how often two samples of a batch come from the same extent, relative
 * to chance: 1 for a full shuffle. The <b>spread</b> is how far apart in the epoch the samples of
 * an extent are (their standard deviation), relative to a full shuffle: 1 is best here too.
 */
public final class Quality {

  /** The standard deviation of a uniform number between 0 and 1. */
  private static final double UNIFORM_DEVIATION = 1 / Math.sqrt(12);

  private final ExtentCuts cuts;
  private final double chance; // that two samples of the dataset share an extent
  private final long samples;
  private final MemorySegment sums; // of each extent: count, sum and sum of squares of positions
  private final Tally global = new Tally();
  private final Tally own = new Tally();
  private long position;

  /** What was measured of one epoch. */
  public record Report(
      double mateRatio,
      double rankMateRatio,
      double worstBatch,
      double distinctExtents,
      double spread) {}

  /**
   * The pairs in a batch that share an extent.
   *
   * @param byChance how many would in a full shuffle, on average
   */
  public record Mates(double pairs, double byChance) {}

  /** Mates over many batches. */
  private final class Tally {
    double pairs;
    double mates;
    double worst; // mates of a batch relative to its pairs
    long batches;
    double distinct;
    int fullest; // samples; short batches say little, one by one

    Mates add(long[] extents) {
      Arrays.sort(extents);
      double batchMates = 0;
      int different = 0;
      for (int i = 0; i < extents.length; ) {
        int end = i + 1;
        while (end < extents.length && extents[end] == extents[i]) {
          end++;
        }
        batchMates += (end - i) * (end - i - 1.0) / 2;
        different++;
        i = end;
      }
      double batchPairs = extents.length * (extents.length - 1.0) / 2;
      pairs += batchPairs;
      mates += batchMates;
      batches++;
      distinct += different;
      fullest = Math.max(fullest, extents.length);
      if (extents.length == fullest && batchPairs > 0) {
        worst = Math.max(worst, batchMates / batchPairs);
      }
      return new Mates(batchMates, batchPairs * chance);
    }

    double mateRatio() {
      return pairs == 0 || chance == 0 ? 1 : mates / pairs / chance;
    }
  }

  public Quality(ExtentCuts cuts) {
    this.cuts = cuts;
    this.samples = cuts.firstSample(cuts.count());
    this.sums = Arena.ofAuto().allocate(Math.max(1, 24 * cuts.count()), 8);
    double mates = 0;
    for (long extent = 0; extent < cuts.count(); extent++) {
      double size = cuts.firstSample(extent + 1) - cuts.firstSample(extent);
      mates += size * (size - 1);
    }
    this.chance = samples < 2 ? 0 : mates / samples / (samples - 1);
  }

  /**
   * Adds one step: the samples that each rank gets, without repeats. Steps come in their order.
   *
   * @return the mates in its global batch
   */
  public Mates add(long[][] ofRanks) {
    int count = 0;
    for (long[] batch : ofRanks) {
      count += batch.length;
    }
    long[] all = new long[count];
    int at = 0;
    for (long[] batch : ofRanks) {
      int start = at;
      for (long sample : batch) {
        long extent = cuts.extentOf(sample);
        all[at++] = extent;
        place(extent);
      }
      own.add(Arrays.copyOfRange(all, start, at));
    }
    return global.add(all);
  }

  private void place(long extent) {
    double at = (position++ + 0.5) / samples;
    add(3 * extent, 1);
    add(3 * extent + 1, at);
    add(3 * extent + 2, at * at);
  }

  private void add(long index, double value) {
    sums.setAtIndex(
        ValueLayout.JAVA_DOUBLE, index, sums.getAtIndex(ValueLayout.JAVA_DOUBLE, index) + value);
  }

  /** What has been measured so far. */
  public Report report() {
    double mean = global.pairs == 0 ? 0 : global.mates / global.pairs;
    return new Report(
        global.mateRatio(),
        own.mateRatio(),
        mean == 0 ? 1 : global.worst / mean,
        global.batches == 0 ? 0 : global.distinct / global.batches,
        spread());
  }

  private double spread() {
    double sum = 0;
    long extents = 0;
    for (long extent = 0; extent < cuts.count(); extent++) {
      double count = sums.getAtIndex(ValueLayout.JAVA_DOUBLE, 3 * extent);
      if (count >= 2) {
        double mean = sums.getAtIndex(ValueLayout.JAVA_DOUBLE, 3 * extent + 1) / count;
        double square = sums.getAtIndex(ValueLayout.JAVA_DOUBLE, 3 * extent + 2) / count;
        sum += Math.max(0, square - mean * mean) * count / (count - 1);
        extents++;
      }
    }
    return extents == 0 ? 1 : Math.sqrt(sum / extents) / UNIFORM_DEVIATION;
  }
}
