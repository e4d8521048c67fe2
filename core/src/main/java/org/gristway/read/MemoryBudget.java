package org.gristway.read;

import java.util.concurrent.atomic.AtomicLong;

/**
 * The memory that a loader may take for what it has read. Plans never use more, so nobody waits for
 * it; that more is taken than there is, is a bug, and refused as one. Any thread may call.
 */
final class MemoryBudget {

  private final long bytes;
  private final AtomicLong taken = new AtomicLong();

  MemoryBudget(long bytes) {
    this.bytes = bytes;
  }

  void take(long count) {
    long now = taken.addAndGet(count);
    if (now > bytes) {
      throw new IllegalStateException(now + " bytes are resident of a budget of " + bytes);
    }
  }

  void give(long count) {
    taken.addAndGet(-count);
  }

  /** The bytes that are in use now. */
  long resident() {
    return taken.get();
  }
}
