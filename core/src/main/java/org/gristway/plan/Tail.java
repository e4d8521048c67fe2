package org.gristway.plan;

/** What becomes of the samples that do not fill a global batch. */
public enum Tail {
  /**
   * They are dealt evenly, in a last batch that is short. If they are fewer than the ranks, the
   * ranks without one get one flagged repeat, so that every rank has as many batches.
   */
  SHORT,
  /** They are left out of this epoch. */
  DROP,
  /** They are dealt evenly, and every rank's last batch is filled up with flagged repeats. */
  PAD
}
