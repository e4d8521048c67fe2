package org.gristway.read;

/**
 * Where the threads of a loader come from: the system, or whoever decides on when each of them
 * runs.
 */
public interface Threads {

  /**
   * Platform threads, which end with the process: file reads block, so virtual ones gain nothing.
   */
  Threads PLATFORM = (name, work) -> Thread.ofPlatform().name(name).daemon().unstarted(work);

  /** A thread that is not started yet. */
  Thread unstarted(String name, Runnable work);
}
