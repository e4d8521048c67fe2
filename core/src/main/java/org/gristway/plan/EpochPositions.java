package org.gristway.plan;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Where in an epoch each sample comes: 4 bytes a sample, outside the heap. For one thread.
 *
 * <p>The <b>rank correlation</b> of two epochs (Spearman's) is 0 if the order of one tells nothing
 * of the other, and 1 if they are the same.
 */
public final class EpochPositions implements AutoCloseable {

  /** In place of a position, for a sample that does not come. */
  public static final long ABSENT = 0xffff_ffffL;

  private final long samples;
  private final Arena arena = Arena.ofConfined();
  private final MemorySegment positions;
  private int next;

  public EpochPositions(long samples) {
    this.samples = samples;
    this.positions = arena.allocate(Math.max(1, 4 * samples), 4);
    positions.fill((byte) ABSENT);
  }

  /** Adds the sample that comes next. */
  public void add(long sample) {
    positions.setAtIndex(ValueLayout.JAVA_INT, sample, next++);
  }

  /** How many samples come before this one, or {@link #ABSENT}. */
  public long of(long sample) {
    return Integer.toUnsignedLong(positions.getAtIndex(ValueLayout.JAVA_INT, sample));
  }

  /**
   * The rank correlation with another epoch, over the samples that are in both; 0 if those are too
   * few to say. What one of them leaves out is a small random part, so the others' positions stand
   * for their ranks.
   */
  public double correlationWith(EpochPositions other) {
    double n = 0;
    double sum = 0;
    double otherSum = 0;
    for (long sample = 0; sample < samples; sample++) {
      if (of(sample) != ABSENT && other.of(sample) != ABSENT) {
        n++;
        sum += of(sample);
        otherSum += other.of(sample);
      }
    }
    double mean = sum / n;
    double otherMean = otherSum / n;
    double product = 0;
    double squares = 0;
    double otherSquares = 0;
    for (long sample = 0; sample < samples; sample++) {
      if (of(sample) != ABSENT && other.of(sample) != ABSENT) {
        double from = of(sample) - mean;
        double otherFrom = other.of(sample) - otherMean;
        product += from * otherFrom;
        squares += from * from;
        otherSquares += otherFrom * otherFrom;
      }
    }
    double scale = Math.sqrt(squares * otherSquares);
    return scale == 0 ? 0 : product / scale;
  }

  @Override
  public void close() {
    arena.close();
  }
}
