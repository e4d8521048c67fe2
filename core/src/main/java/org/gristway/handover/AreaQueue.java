package org.gristway.handover;

import java.util.ArrayDeque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Whose turn each area of a rank is. An area goes round: free, then claimed by whoever builds the
 * batch, then ready, then taken by the trainer, then released and free again.
 *
 * <p>Batches are taken in the order in which they are published. With no area free, building waits:
 * that is the back-pressure of a slow trainer. Any thread may call anything.
 */
public final class AreaQueue {

  /** In place of an area: there is none and will be none. */
  public static final int NONE = -1;

  /** In place of an area: the trainer holds them all, so that none can ever get ready. */
  public static final int ALL_TAKEN = -2;

  private int areas;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final ArrayDeque<Integer> free = new ArrayDeque<>();
  private final ArrayDeque<Integer> ready = new ArrayDeque<>();
  private int taken;
  private boolean ended;
  private @Nullable Throwable failure;

  public AreaQueue(int areas) {
    this.areas = areas;
    for (int area = 0; area < areas; area++) {
      free.add(area);
    }
  }

  /** An area to build a batch in, when one is free; {@link #NONE} once the queue has ended. */
  public int claim() throws InterruptedException {
    lock.lockInterruptibly();
    try {
      while (free.isEmpty() && !ended) {
        changed.await();
      }
      return ended ? NONE : free.pop(); // the one used last, which the processor may still know
    } finally {
      lock.unlock();
    }
  }

  /** Gives a claimed area back in which no batch could be built. */
  public void abandon(int area) {
    lock.lock();
    try {
      free.push(area);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Hands a claimed area, which holds a batch now, to the trainer. */
  public void publish(int area) {
    lock.lock();
    try {
      ready.add(area);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /**
   * The next batch's area, when it is ready; {@link #NONE} if the queue has ended and all that was
   * published is taken; {@link #ALL_TAKEN} if waiting would be for ever. Throws what ended the
   * queue.
   */
  public int take() throws InterruptedException {
    lock.lockInterruptibly();
    try {
      while (ready.isEmpty() && !ended) {
        if (taken == areas) {
          return ALL_TAKEN;
        }
        changed.await();
      }
      if (ready.isEmpty()) {
        throwFailure();
        return NONE;
      }
      taken++;
      return ready.remove();
    } finally {
      lock.unlock();
    }
  }

  private void throwFailure() {
    switch (failure) {
      case null -> {}
      case RuntimeException known -> throw known;
      case Error error -> throw error;
      case Throwable other -> throw new IllegalStateException(other);
    }
  }

  /** Gives a taken area back: its memory may be built in again. */
  public void release(int area) {
    lock.lock();
    try {
      taken--;
      free.push(area);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** How many areas there are. */
  public int size() {
    lock.lock();
    try {
      return areas;
    } finally {
      lock.unlock();
    }
  }

  /** Adds areas until there are so many: for a trainer that uses more batches at once. */
  public void grow(int count) {
    lock.lock();
    try {
      for (; areas < count; areas++) {
        free.add(areas);
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** True if claiming an area would not wait. */
  public boolean hasFree() {
    lock.lock();
    try {
      return !free.isEmpty();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Ends the queue: nothing more is claimed. Trainers get what is ready, then the failure, if any.
   */
  public void end(@Nullable Throwable why) {
    lock.lock();
    try {
      if (!ended) {
        ended = true;
        failure = why;
        changed.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }
}
