package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.os.PosixException;
import org.jspecify.annotations.Nullable;

/**
 * How long reads are tried again that a device or a mount has failed: storages fail over, networks
 * come back. What still fails then ends the run; it is no damage, as nothing was read.
 *
 * <p>Any thread may call. Whoever waits is let go by {@link #end}.
 */
final class Patience {

  private static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(2);

  /** Many reads fail at once: one line is enough for all of them. */
  private static final long BETWEEN_NOTICES = TimeUnit.SECONDS.toNanos(10);

  /** The tries of one read that has failed. For one thread at a time. */
  final class Tries {
    private final long since = System.nanoTime();
    private long pause = FIRST_PAUSE;

    private Tries() {}

    /** How long to wait before the next try, in nanoseconds. */
    long nextPause() {
      long now = pause;
      pause = Math.min(LONGEST_PAUSE, 2 * pause);
      return Math.min(now, Math.max(0, since + limit - System.nanoTime()));
    }

    private boolean isOver() {
      return System.nanoTime() - since >= limit;
    }
  }

  private final Path dataset;
  private final long limit;
  private final Consumer<String> notices;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition ending = lock.newCondition();
  private boolean ended;
  private boolean hasTold;
  private long told;

  /**
   * @param limit how long a read is tried again
   * @param notices told that reads are tried again
   */
  Patience(Path dataset, Duration limit, Consumer<String> notices) {
    this.dataset = dataset;
    this.limit = limit.toNanos();
    this.notices = notices;
  }

  /**
   * What is to be done about a read that has failed.
   *
   * @param before its earlier tries, or null
   * @return its tries, if it is to be tried again after {@link Tries#nextPause}; otherwise null
   */
  @Nullable Tries goesOn(@Nullable Tries before, Throwable failure) {
    if (!mayPass(failure) || limit == 0) {
      return null;
    }
    Tries tries = before == null ? new Tries() : before;
    lock.lock();
    try {
      if (ended || tries.isOver()) {
        return null;
      }
      tell(failure);
    } finally {
      lock.unlock();
    }
    return tries;
  }

  /** What to say of a read that is not tried again. */
  Throwable outcome(@Nullable Tries tries, Throwable failure) {
    if (!mayPass(failure)) {
      return failure;
    }
    long seconds =
        tries == null ? 0 : TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - tries.since);
    return Failure.environment(
        "%s, and so for %d seconds in which it was tried again: see to the disk or the mount, and go"
            + " on from the last state; what stays unreadable is told by 'gristway verify %s', and"
            + " comes back from a copy, or by packing again",
        failure.getMessage(), seconds, dataset);
  }

  private void tell(Throwable failure) {
    long now = System.nanoTime();
    if (!hasTold || now - told >= BETWEEN_NOTICES) {
      hasTold = true;
      told = now;
      String line =
          String.valueOf(
              Failure.environment(
                      "%s; it is tried again, for up to %s",
                      failure.getMessage(), words(Duration.ofNanos(limit)))
                  .getMessage());
      synchronized (notices) {
        notices.accept(line);
      }
    }
  }

  private static String words(Duration time) {
    return time.toMillis() % 1000 == 0
        ? time.toSeconds() + " seconds"
        : time.toMillis() + " milliseconds";
  }

  /** True if it is the device or the mount that has failed a read. */
  private static boolean mayPass(Throwable failure) {
    return failure instanceof Failure
        && failure.getCause() instanceof PosixException cause
        && cause.isOfTheStorage();
  }

  /**
   * Fills memory from a source, trying again in this thread.
   *
   * @throws Failure if it cannot be read, or if nobody waits for it any more
   */
  void fill(ChunkSource source, Extent extent, MemorySegment memory) {
    Tries tries = null;
    while (true) {
      try {
        source.fill(extent, memory);
        return;
      } catch (Failure failure) {
        Tries next = goesOn(tries, failure);
        if (next == null || !passes(next.nextPause())) {
          throw outcome(tries, failure) instanceof Failure told ? told : failure;
        }
        tries = next;
      }
    }
  }

  /** Waits; false if nobody waits for the result any more. */
  private boolean passes(long pause) {
    lock.lock();
    try {
      long left = pause;
      while (left > 0 && !ended) {
        left = ending.awaitNanos(left);
      }
      return !ended;
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      lock.unlock();
    }
  }

  /** Stops trying anything again. */
  void end() {
    lock.lock();
    try {
      ended = true;
      ending.signalAll();
    } finally {
      lock.unlock();
    }
  }
}
