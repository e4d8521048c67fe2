package org.gristway.snapshot;

import java.util.BitSet;

/** Counts labels: how many samples have one, and how many different ones there are. One thread. */
public final class LabelTally {

  /** More classes than anyone has: telling higher numbers apart would take memory for nothing. */
  private static final int MOST = 1 << 26;

  private final BitSet different = new BitSet();
  private long labelled;
  private int lowest = Integer.MAX_VALUE;
  private int highest = -1;

  /** Counts the label of one sample; a negative number is none. */
  public void add(int label) {
    if (label < 0) {
      return;
    }
    labelled++;
    lowest = Math.min(lowest, label);
    highest = Math.max(highest, label);
    if (label < MOST) {
      different.set(label);
    }
  }

  /** The samples that have a label. */
  public long labelled() {
    return labelled;
  }

  /** How many different labels they have, or -1 if one is so high that nobody counts them. */
  public int classes() {
    return highest < MOST ? different.cardinality() : -1;
  }

  /** The lowest label, or 0 if there is none. */
  public int lowest() {
    return labelled == 0 ? 0 : lowest;
  }

  /** The highest label, or -1 if there is none. */
  public int highest() {
    return highest;
  }
}
