package org.gristway.dataset;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A few platform threads that share a piece of work: reading files blocks, so virtual ones gain
 * nothing.
 */
public final class Workers {

  private Workers() {}

  /**
   * Runs {@code work} in {@code count} threads and returns when all have ended. The first thing
   * that one of them throws is thrown here, after the others have ended too; an interrupt of the
   * caller is passed on to them.
   */
  public static void run(String name, int count, Runnable work) {
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      threads.add(
          Thread.ofPlatform()
              .name("gristway-" + name + "-" + i)
              .daemon()
              .uncaughtExceptionHandler((thread, cause) -> thrown.compareAndSet(null, cause))
              .start(work));
    }
    join(threads, () -> threads.forEach(Thread::interrupt));
    switch (thrown.get()) {
      case null -> {}
      case RuntimeException known -> throw known;
      case Error error -> throw error;
      case Throwable other -> throw new IllegalStateException(other);
    }
  }

  /**
   * Returns when all have ended. An interrupt does not cut that short; it is kept for the caller.
   */
  public static void join(List<Thread> threads) {
    join(threads, () -> {});
  }

  private static void join(List<Thread> threads, Runnable onInterrupt) {
    boolean interrupted = false;
    for (Thread thread : threads) {
      while (thread.isAlive()) {
        try {
          thread.join();
        } catch (InterruptedException stop) {
          interrupted = true;
          onInterrupt.run();
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
