package org.gristway.cli;

import org.gristway.pack.Notices;

/** Tells what was left out, but not a million lines of it. */
final class LeftOut implements Notices {

  private static final int MOST = 20;

  private final Console console;
  private long count;

  LeftOut(Console console) {
    this.console = console;
  }

  @Override
  public void leftOut(String line) {
    count++;
    if (count <= MOST) {
      console.complain(line);
    }
  }

  @Override
  public void remark(String line) {
    console.complain(line);
  }

  /** Counts what was not shown. */
  void end() {
    if (count > MOST) {
      console.complain("… and " + Text.number(count - MOST) + " more");
    }
  }
}
