package org.gristway.peer;

/** What happens to a simulated job. */
enum Trouble {
  NONE,
  /** A node is stopped for less than the limit of silence. */
  SHORT_HANG,
  /** Nodes are cut off from each other for less than that. */
  SHORT_CUT,
  /** A process ends, and its connections break. */
  KILL,
  /** The connection of two nodes breaks, and both are there. */
  BREAK,
  /** A machine is gone, and nobody says so. */
  OUTAGE,
  /** A node is stopped for longer than the limit, and then goes on. */
  LONG_HANG,
  /** Nodes are cut off from each other for good. */
  CUT;

  /** True if the job cannot go on. */
  boolean isFatal() {
    return ordinal() >= KILL.ordinal();
  }
}
