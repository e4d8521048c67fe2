package org.gristway.handover;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;

/**
 * Whose turn each area of a rank is. An area goes round: free, then claimed by whoever builds the
 * batch, then ready, then taken by the trainer, then released and free again.
 *
 * <p>Batches are taken in the order in which they are published. With no area free, building waits:
 * that is the back-pressure of a slow trainer. The same holds where areas are free and there is no
 * memory to build in: see {@link Choice}. Any thread may call anything.
 */
public final class AreaQueue {

  /** In place of an area: there is none and will be none. */
  public static final int NONE = -1;

  /**
   * In place of an area: the trainer holds them all, or all memory that there is for them, so that
   * none can ever get ready.
   */
  public static final int ALL_TAKEN = -2;

  /** Chooses an area to build in. */
  public interface Choice {

    /**
     * One of the free areas, which is removed from them; {@link #NONE} if there is no memory for
     * what is to be built. It may remove further areas; the caller must abandon those afterwards.
     * Is called with the queue's lock held, and with at least one area.
     *
     * @param free those that were used last come first
     */
    int from(Deque<Integer> free);
  }

  /** Between two looks for memory, which may be given back elsewhere. */
  private static final long LOOK_AGAIN_MILLIS = 20;

  private int areas;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final ArrayDeque<Integer> free = new ArrayDeque<>();
  private final ArrayDeque<Integer> ready = new ArrayDeque<>();
  private int taken;
  private int claimed;
  private boolean isStarved; // who builds has found areas, and no memory
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
    return claim(Deque::pop, true); // the one used last, which the processor may still know
  }

  /**
   * The same with a choice among the free ones.
   *
   * @param waits until there is one; otherwise {@link #ALL_TAKEN} tells that there is none now
   */
  public int claim(Choice choice, boolean waits) throws InterruptedException {
    lock.lockInterruptibly();
    try {
      while (!ended) {
        int before = free.size();
        int area = before == 0 ? NONE : choice.from(free);
        claimed += before - free.size();
        isStarved = area == NONE && before > 0;
        if (area != NONE) {
          return area;
        }
        if (!waits) {
          return ALL_TAKEN;
        }
        if (isStarved) {
          changed.signalAll(); // who waits to take a batch may be the one who has the memory
          changed.await(LOOK_AGAIN_MILLIS, TimeUnit.MILLISECONDS);
        } else {
          changed.await();
        }
      }
      return NONE;
    } finally {
      lock.unlock();
    }
  }

  /** Claims all free areas of a kind; the caller must abandon them. */
  List<Integer> claimAll(IntPredicate kind) {
    lock.lock();
    try {
      List<Integer> chosen = free.stream().filter(kind::test).toList();
      free.removeAll(chosen);
      claimed += chosen.size();
      return chosen;
    } finally {
      lock.unlock();
    }
  }

  /** Gives a claimed area back in which no batch could be built. */
  public void abandon(int area) {
    lock.lock();
    try {
      claimed--;
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
      claimed--;
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
        if (taken == areas || (isStarved && claimed == 0)) {
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
      isStarved = false; // until who builds has looked again
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

  /** Takes out all areas that nobody uses or builds in: none of them is claimed or taken later. */
  public List<Integer> drain() {
    lock.lock();
    try {
      List<Integer> unused = new ArrayList<>(free);
      unused.addAll(ready);
      free.clear();
      ready.clear();
      return unused;
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
