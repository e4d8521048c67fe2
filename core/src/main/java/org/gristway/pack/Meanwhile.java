package org.gristway.pack;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** Work that goes on in a thread of its own while its maker does something else. */
final class Meanwhile implements AutoCloseable {

  /** What is done. */
  interface Work {
    void run() throws IOException;
  }

  private final Thread thread;
  private volatile @Nullable Throwable thrown;

  Meanwhile(Work work) {
    this.thread =
        Thread.ofPlatform()
            .name("gristway-meanwhile")
            .daemon()
            .start(
                () -> {
                  try {
                    work.run();
                  } catch (Throwable failed) {
                    thrown = failed;
                  }
                });
  }

  /** True once it is known to have failed. */
  boolean hasFailed() {
    return thrown != null;
  }

  /** Waits for its end; what it threw is thrown here. */
  void join() throws IOException {
    await();
    switch (thrown) {
      case null -> {}
      case IOException known -> throw known;
      case RuntimeException known -> throw known;
      case Error known -> throw known;
      case Throwable other -> throw new IllegalStateException(other);
    }
  }

  /** Asks it to end, if it has not, and waits for that: nothing it uses may be closed before. */
  @Override
  public void close() {
    thread.interrupt();
    await();
  }

  private void await() {
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException stop) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
