package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.dataset.Workers;
import org.jspecify.annotations.Nullable;

/**
 * The reads that wait for the storage, and the few threads that do them. Each lane's reads begin in
 * the order in which it asks, but for those that are wanted at once; lanes take turns, so that none
 * waits for another's read-ahead.
 */
final class LoadQueue implements AutoCloseable {

  /** A read: the pages of an extent into memory, from where they are. */
  record Load(ChunkSource source, Extent pages, MemorySegment memory, Arrival arrival) {}

  /** Told in a reading thread when a read has ended. */
  interface Arrival {
    void arrived(@Nullable Throwable failure);
  }

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition waiting = lock.newCondition();
  private final List<ArrayDeque<Load>> lanes = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private int turn;
  private int queued;
  private boolean closed;

  LoadQueue(int lanes, int depth, Threads from) {
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
    for (Load load = take(); load != null; load = take()) {
      Throwable failure = null;
      try {
        load.source().fill(load.pages(), load.memory());
      } catch (Throwable thrown) {
        failure = thrown; // whoever waits for the read has a use for it; this thread has none
      }
      load.arrival().arrived(failure);
    }
  }

  /** The next read, or null when there will be none. */
  private @Nullable Load take() {
    lock.lock();
    try {
      while (queued == 0 && !closed) {
        waiting.awaitUninterruptibly();
      }
      if (closed) {
        return null;
      }
      while (lanes.get(turn).isEmpty()) {
        turn = (turn + 1) % lanes.size();
      }
      Load load = lanes.get(turn).remove();
      turn = (turn + 1) % lanes.size();
      queued--;
      return load;
    } finally {
      lock.unlock();
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
