package org.gristway.pack;

import org.gristway.Progress;

/** Does something once, when a stage of the work begins: the world changes while we pack. */
final class Interference implements Progress {

  /** What is done. */
  interface Action {
    void run() throws Exception;
  }

  private final String stage;
  private final Action action;
  private boolean done;

  private Interference(String stage, Action action) {
    this.stage = stage;
    this.action = action;
  }

  /** When all has been listed and placed, and nothing has been copied. */
  static Interference beforeCopying(Action action) {
    return new Interference("packing", action);
  }

  @Override
  public synchronized void begin(String what, Unit unit, long total) {
    if (what.equals(stage) && !done) {
      done = true;
      try {
        action.run();
      } catch (Exception failed) {
        throw new AssertionError(failed);
      }
    }
  }

  @Override
  public void advance(long amount) {}

  @Override
  public void end() {}
}
