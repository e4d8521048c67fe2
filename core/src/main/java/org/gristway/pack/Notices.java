package org.gristway.pack;

/** Hears, a line each, what was left out of a dataset and why. Called from one thread at a time. */
public interface Notices {

  void leftOut(String line);
}
