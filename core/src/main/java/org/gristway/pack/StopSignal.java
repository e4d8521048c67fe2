package org.gristway.pack;

import java.io.IOException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.gristway.Failure;

/**
 * Turns true when the process is asked to end, and holds the end up until what is aside has been
 * cleared, a few seconds at most.
 */
final class StopSignal implements BooleanSupplier, AutoCloseable {

  private volatile boolean stopped;
  private final CountDownLatch cleared = new CountDownLatch(1);
  private final Thread hook = new Thread(this::stop, "gristway-stop");

  StopSignal() {
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /** Work that may fail, or be stopped. */
  interface Work<T> {
    T run() throws IOException;
  }

  private void stop() {
    stopped = true;
    try {
      boolean unused = cleared.await(5, TimeUnit.SECONDS);
    } catch (InterruptedException hurry) {
      Thread.currentThread().interrupt();
    }
  }

  /** Whatever fails because of an interrupt is one: it reaches channels and waits anywhere. */
  <T> T guard(Work<T> work) throws IOException {
    try {
      return work.run();
    } catch (IOException | Failure failed) {
      if (getAsBoolean()) {
        CancellationException cancelled = new CancellationException("interrupted");
        cancelled.initCause(failed);
        throw cancelled;
      }
      throw failed;
    }
  }

  @Override
  public boolean getAsBoolean() {
    return stopped || Thread.currentThread().isInterrupted();
  }

  @Override
  public void close() {
    cleared.countDown();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException ending) {
      // The process is ending, and the hook is what waits for us.
    }
  }
}
