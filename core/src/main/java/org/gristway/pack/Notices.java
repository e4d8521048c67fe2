package org.gristway.pack;

/** Hears, a line each, what was left out of a dataset and why. Called from one thread at a time. */
public interface Notices {

  void leftOut(String line);

  /** Hears a line about the dataset as a whole that its maker should know. */
  default void remark(String line) {
    leftOut(line);
  }
}
