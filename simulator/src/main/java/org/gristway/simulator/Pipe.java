package org.gristway.simulator;

/**
 * Something that passes one thing after the other: a disk, a link, a shared store. For one thread.
 */
final class Pipe {

  private double free;

  /**
   * When something that takes {@code seconds} and is asked for {@code now} has passed, if things
   * are asked for in the order of time: it begins when what was asked before has ended.
   */
  double pass(double now, double seconds) {
    free = Math.max(free, now) + seconds;
    return free;
  }

  /**
   * The same where several ranks ask, each in the order of its own time: what they ask for in one
   * step is passed in any order, as soon as the first of them could ask.
   *
   * @param since when that is
   */
  double pass(double now, double since, double seconds) {
    free = Math.max(free, since) + seconds;
    return Math.max(free, now + seconds);
  }
}
