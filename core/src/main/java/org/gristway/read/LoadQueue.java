package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.dataset.Workers;
import org.jspecify.annotations.Nullable;

/**
 * The reads that wait for the storage, and the few threads that do them. Each lane's reads begin in
 * the order in which it asks, but for those that are wanted at once; lanes take turns, so that none
 * waits for another's read-ahead. A read that the storage fails is tried again later; no thread
 * waits for that, so other reads go on meanwhile.
 */
final class LoadQueue implements AutoCloseable {

  /** A read: the pages of an extent into memory, from where they are. */
  record Load(ChunkSource source, Extent pages, MemorySegment memory, Arrival arrival) {}

  /** Told in a reading thread when a read has ended. */
  interface Arrival {
    void arrived(@Nullable Throwable failure);
  }

  /** A read that is to be done, with the tries that have failed. */
  private record Try(Load load, Patience.@Nullable Tries before) {}

  /**
   * A read that has failed and waits to be tried again.
   *
   * @param failure of its last try
   * @param due when the next one begins, by {@link System#nanoTime}
   */
  private record PutOff(Load load, Patience.Tries tries, Throwable failure, long due)
      implements Comparable<PutOff> {
    @Override
    public int compareTo(PutOff other) {
      return Long.signum(due - other.due); // the clock may pass the largest number
    }
  }

  private final Patience patience;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition waiting = lock.newCondition();
  private final List<ArrayDeque<Load>> lanes = new ArrayList<>();
  private final PriorityQueue<PutOff> putOff = new PriorityQueue<>();
  private final List<Thread> threads = new ArrayList<>();
  private int turn;
  private int queued;
  private boolean triesOnce;
  private boolean closed;

  LoadQueue(int lanes, int depth, Threads from, Patience patience) {
    this.patience = patience;
    for (int i = 0; i < lanes; i++) {
      this.lanes.add(new ArrayDeque<>());
    }
    try {
      for (int i = 0; i < depth; i++) {
        Thread thread = from.unstarted("gristway-load-" + i, this::readUntilClosed);
        thread.start();
        threads.add(thread);
      }
    } catch (Throwable noMoreThreads) {
      close();
      throw noMoreThreads;
    }
  }

  /** Reads what is wanted later. */
  void submit(int lane, Load load) {
    submit(() -> lanes.get(lane).addLast(load));
  }

  /** Reads what is wanted now, before all that was asked for ahead. */
  void submitFirst(int lane, Load load) {
    submit(() -> lanes.get(lane).addFirst(load));
  }

  private void submit(Runnable add) {
    lock.lock();
    try {
      add.run();
      queued++;
      waiting.signal();
    } finally {
      lock.unlock();
    }
  }

  private void readUntilClosed() {
    for (Try next = take(); next != null; next = take()) {
      Load load = next.load();
      Throwable failure = null;
      try {
        load.source().fill(load.pages(), load.memory());
      } catch (Throwable thrown) {
        failure = thrown; // whoever waits for the read has a use for it; this thread has none
      }
      if (failure == null) {
        load.arrival().arrived(null);
      } else if (!putsOff(next, failure)) {
        load.arrival().arrived(patience.outcome(next.before(), failure));
      }
    }
  }

  /** Puts a read off, to be tried again later; false if that is not worth it. */
  private boolean putsOff(Try failed, Throwable failure) {
    Patience.Tries tries = patience.goesOn(failed.before(), failure);
    if (tries == null) {
      return false;
    }
    lock.lock();
    try {
      if (triesOnce) {
        return false;
      }
      putOff.add(new PutOff(failed.load(), tries, failure, System.nanoTime() + tries.nextPause()));
      waiting.signalAll(); // those who wait must not wait for longer than that
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** The next read, or null when there will be none. */
  private @Nullable Try take() {
    lock.lock();
    try {
      while (!closed) {
        PutOff first = putOff.peek();
        long wait = first == null ? 0 : first.due() - System.nanoTime();
        if (first != null && wait <= 0) {
          putOff.remove();
          return new Try(first.load(), first.tries());
        }
        if (queued > 0) {
          return new Try(takeQueued(), null);
        }
        if (first == null) {
          waiting.awaitUninterruptibly();
        } else {
          awaitUninterruptibly(wait);
        }
      }
      return null;
    } finally {
      lock.unlock();
    }
  }

  private Load takeQueued() {
    while (lanes.get(turn).isEmpty()) {
      turn = (turn + 1) % lanes.size();
    }
    Load load = lanes.get(turn).remove();
    turn = (turn + 1) % lanes.size();
    queued--;
    return load;
  }

  private void awaitUninterruptibly(long nanos) {
    try {
      long unused = waiting.awaitNanos(nanos);
    } catch (InterruptedException noReason) {
      // Only closing ends these threads.
    }
  }

  /** Stops trying reads again; those that wait for that have failed. */
  void tryOnce() {
    List<PutOff> left;
    lock.lock();
    try {
      triesOnce = true;
      left = List.copyOf(putOff);
      putOff.clear();
    } finally {
      lock.unlock();
    }
    for (PutOff each : left) {
      each.load().arrival().arrived(patience.outcome(each.tries(), each.failure()));
    }
  }

  /** Forgets what waits, and returns when no read is under way any more. */
  @Override
  public void close() {
    lock.lock();
    try {
      closed = true;
      waiting.signalAll();
    } finally {
      lock.unlock();
    }
    Workers.join(threads);
  }
}
