package org.gristway.read;

import java.util.List;
import java.util.concurrent.TimeUnit;

/** How far loaders have come ahead of their trainers. */
final class Ahead {

  private static final int LOOKS = 20;

  private Ahead() {}

  /**
   * Returns when all threads of open loaders have had nothing to do for a while: as much is read
   * and built as there is room for. (Under load, one that is woken may be so late that it is taken
   * for idle: what tests then see must be right as well.)
   */
  static void awaitIdle() throws InterruptedException {
    for (int looks = 0; looks < LOOKS; ) {
      TimeUnit.MILLISECONDS.sleep(1);
      looks = threads().stream().allMatch(Ahead::isWaiting) ? looks + 1 : 0;
    }
  }

  private static List<Thread> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("gristway-l")) // lanes and loads
        .toList();
  }

  private static boolean isWaiting(Thread thread) {
    return thread.getState() == Thread.State.WAITING;
  }
}
