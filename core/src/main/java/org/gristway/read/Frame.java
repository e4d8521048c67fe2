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

  private enum State {
    FREE,
    LOADING,
    LOADED
  }

  private State state = State.FREE;
  private MemorySegment memory = MemorySegment.NULL;
  private @Nullable Extent pages;
  private @Nullable Throwable failure;

  /** Makes it the frame of an extent (with the rest of its first and last page). */
  synchronized void claim(Extent newPages, MemorySegment newMemory) {
    if (state != State.FREE) {
      throw new IllegalStateException("a frame is loaded while it is in use");
    }
    state = State.LOADING;
    pages = newPages;
    memory = newMemory;
    failure = null;
  }

  /** Tells that the extent has arrived, or why it has not. */
  synchronized void loaded(@Nullable Throwable why) {
    if (state != State.LOADING) {
      throw new IllegalStateException("a frame is loaded that nobody has claimed");
    }
    failure = why;
    state = State.LOADED;
    notifyAll();
  }

  /** Waits until the frame has been claimed and its extent has arrived, or failed to. */
  synchronized void await() throws InterruptedException {
    while (state != State.LOADED) {
      wait();
    }
  }

  /** True if something has been asked to be loaded into it. */
  synchronized boolean isClaimed() {
    return state != State.FREE;
  }

  /** True if {@link #await} would not wait. */
  synchronized boolean isLoaded() {
    return state == State.LOADED;
  }

  /** Why the extent could not be read, or null; to be asked after {@link #await}. */
  synchronized @Nullable Throwable failure() {
    return failure;
  }

  /** The extent's pages; to be asked after {@link #await}. */
  synchronized MemorySegment memory() {
    return memory;
  }

  /** What the first byte of the memory is in the chunk's file. */
  synchronized long fileOffset() {
    Extent held = pages;
    if (held == null) {
      throw new IllegalStateException("a frame is used that holds nothing");
    }
    return held.offset();
  }

  synchronized void release() {
    if (state != State.LOADED) {
      throw new IllegalStateException("a frame is released that is not loaded");
    }
    state = State.FREE;
    pages = null;
  }
}
