package org.gristway.read;

import java.lang.foreign.MemorySegment;
import org.gristway.chunk.Extent;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one resident extent. It is free, then loading, then loaded or failed, then free
 * again. Whoever claims it decides what is loaded; whoever loads it tells when that is done; any
 * number of threads may wait for that.
 */
final class Frame {

  /**
   * What a frame holds.
   *
   * @param pages of the extent: it, with the rest of its first and last page
   * @param memory that they are in
   * @param failure why they are not there, or null
   */
  record Held(Extent pages, MemorySegment memory, @Nullable Throwable failure) {}

  private @Nullable Held loading;
  private volatile @Nullable Held held;

  /** Makes it the frame of some pages, which will be loaded into the memory. */
  synchronized void claim(Extent pages, MemorySegment memory) {
    if (isClaimed()) {
      throw new IllegalStateException("a frame is loaded while it is in use");
    }
    loading = new Held(pages, memory, null);
  }

  /** Tells that the pages have arrived, or why they have not. */
  synchronized void loaded(@Nullable Throwable failure) {
    Held arrived = loading;
    if (arrived == null) {
      throw new IllegalStateException("a frame is loaded that nobody has claimed");
    }
    loading = null;
    held = failure == null ? arrived : new Held(arrived.pages(), arrived.memory(), failure);
    notifyAll();
  }

  /** What it holds, if that has arrived; otherwise null. */
  @Nullable Held held() {
    return held;
  }

  /** What it holds, when it has been claimed and its pages have arrived, or failed to. */
  synchronized Held await() throws InterruptedException {
    Held arrived = held;
    while (arrived == null) {
      wait();
      arrived = held;
    }
    return arrived;
  }

  /** The same, whoever would rather have it end: for memory that goes when it has arrived. */
  Held awaitThrough() {
    boolean isInterrupted = false;
    while (true) {
      try {
        return await();
      } catch (InterruptedException later) {
        isInterrupted = true;
      } finally {
        if (isInterrupted && held != null) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }

  /** True if something is loaded, or being loaded, into it. */
  synchronized boolean isClaimed() {
    return loading != null || held != null;
  }

  /** Ends what it holds; the bytes of its memory. */
  synchronized long release() {
    Held old = held;
    if (old == null) {
      throw new IllegalStateException("a frame is released that is not loaded");
    }
    held = null;
    return old.memory().byteSize();
  }
}
