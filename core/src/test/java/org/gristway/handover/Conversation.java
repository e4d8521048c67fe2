package org.gristway.handover;

import java.util.ArrayList;
import java.util.List;

/**
 * Threads that wait for each other, in words that Lincheck can follow. (It runs the same code many
 * times, each time with other switches between threads, and tells if all wait for ever.)
 */
public final class Conversation {

  private Conversation() {}

  /** What one thread does. Nobody interrupts it. */
  public interface Part {
    void play() throws InterruptedException;
  }

  /** Plays all parts at once, and returns when they have ended. */
  public static void together(Part... parts) {
    List<Thread> threads = new ArrayList<>();
    for (Part part : parts) {
      threads.add(start(part));
    }
    threads.forEach(Conversation::join);
  }

  public static Thread start(Part part) {
    Thread thread =
        new Thread(
            () -> {
              try {
                part.play();
              } catch (InterruptedException unexpected) {
                throw new AssertionError(unexpected);
              }
            });
    thread.start();
    return thread;
  }

  public static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException unexpected) {
      throw new AssertionError(unexpected);
    }
  }

  /** An assertion that Lincheck has little of to follow. */
  public static void check(boolean holds) {
    if (!holds) {
      throw new AssertionError();
    }
  }
}
