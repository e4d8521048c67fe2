package org.gristway.peer;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;

/**
 * A sample that a node wants from the cache of another, and where it is to be put. One thread waits
 * for it, another puts it there; the memory is the waiting thread's again as soon as it has stopped
 * waiting. So whoever puts something there says so before, and is waited for.
 */
final class Wanted {

  private enum State {
    ASKED,
    ARRIVING,
    HERE,
    MISSING
  }

  private final int rank;
  private final long sample;
  private final int tier;
  private final MemorySegment target;
  private State state = State.ASKED;

  /**
   * @param rank that keeps it
   * @param tier of its cache
   * @param target of the sample's length
   */
  Wanted(int rank, long sample, int tier, MemorySegment target) {
    this.rank = rank;
    this.sample = sample;
    this.tier = tier;
    this.target = target;
  }

  int rank() {
    return rank;
  }

  long sample() {
    return sample;
  }

  int tier() {
    return tier;
  }

  MemorySegment target() {
    return target;
  }

  /** Waits until it is there; false if it will not be, or nobody begins to put it there in time. */
  synchronized boolean await(long nanos) {
    long deadline = System.nanoTime() + nanos;
    boolean isInterrupted = false;
    while (state == State.ASKED || state == State.ARRIVING) {
      long left = deadline - System.nanoTime();
      if (state == State.ASKED && (left <= 0 || isInterrupted)) {
        state = State.MISSING;
        break;
      }
      try {
        // What is arriving ends by itself: all of it comes, or the connection breaks.
        wait(state == State.ASKED ? Math.max(1, TimeUnit.NANOSECONDS.toMillis(left)) : 0);
      } catch (InterruptedException hurry) {
        isInterrupted = true;
      }
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
    return state == State.HERE;
  }

  /** Says that it is about to be put there; false if nobody waits for it any more. */
  synchronized boolean begin() {
    if (state != State.ASKED) {
      return false;
    }
    state = State.ARRIVING;
    return true;
  }

  /** Ends what was begun: all of it is there, or not. */
  synchronized void end(boolean isHere) {
    state = isHere ? State.HERE : State.MISSING;
    notifyAll();
  }

  /** Says that it will not come, unless it is about to be put there. */
  synchronized void giveUp() {
    if (state == State.ASKED) {
      end(false);
    }
  }
}
