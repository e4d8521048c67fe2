package org.gristway.plan;

import java.util.Arrays;
import java.util.function.LongToIntFunction;

/**
 * How many samples of a dataset have each label. Labels are numbers of classes, so they are counted
 * in a table by their number: 4 bytes each. Samples with a negative number have none, and do not
 * count. Immutable.
 */
public final class LabelCounts {

  /** More classes than anyone has. Larger numbers are no classes, and a table for them no help. */
  static final int MOST = 1 << 22;

  private final LongToIntFunction labels;
  private final int[] counts;
  private final long labelled;
  private final int different;
  private final double together;

  private LabelCounts(LongToIntFunction labels, int[] counts) {
    this.labels = labels;
    this.counts = counts;
    long sum = 0;
    int found = 0;
    for (int count : counts) {
      sum += count;
      found += count > 0 ? 1 : 0;
    }
    this.labelled = sum;
    this.different = found;
    double squares = 0;
    for (int label = 0; label < counts.length; label++) {
      squares += share(label) * share(label);
    }
    this.together = squares;
  }

  /**
   * Counts them.
   *
   * @param labels of samples, by their number
   */
  public static LabelCounts of(LongToIntFunction labels, long samples) {
    int[] counts = new int[0];
    for (long sample = 0; sample < samples; sample++) {
      int label = labels.applyAsInt(sample);
      if (label >= MOST) {
        return new LabelCounts(_ -> -1, new int[0]);
      }
      if (label >= counts.length) {
        counts = Arrays.copyOf(counts, Math.max(label + 1, 2 * counts.length));
      }
      if (label >= 0) {
        counts[label]++;
      }
    }
    return new LabelCounts(labels, counts);
  }

  /**
   * True if there is something to mix: two labels or more. Also false where some label is no number
   * of a class, being 4,194,304 or more.
   */
  public boolean canMix() {
    return different > 1;
  }

  /** A sample's label, or a negative number. */
  int label(long sample) {
    return labels.applyAsInt(sample);
  }

  /** Samples that have a label. */
  long labelled() {
    return labelled;
  }

  /** The part of them that has this one. */
  double share(int label) {
    return (double) counts[label] / labelled;
  }

  /** The squares of all shares together: how likely two draws have the same label. */
  double together() {
    return together;
  }
}
