package org.gristway.read;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.Failure;
import org.gristway.chunk.Extent;
import org.gristway.os.PrivateMemory;
import org.gristway.plan.ExtentCuts;
import org.jspecify.annotations.Nullable;

/**
 * The frames of a memory budget. Plans say which frame an extent goes to and never use more than
 * there are, so nobody waits for one here.
 *
 * <p>Frames of the usual size lie in one stretch of memory; an extent that is larger gets memory of
 * its own while it is resident. Any thread may call; a frame is claimed and released by one lane.
 */
final class FramePool implements AutoCloseable {

  private final long frameBytes;
  private final MemoryBudget budget;
  private final Frame[] frames;
  private final @Nullable PrivateMemory own;
  private final MemorySegment stretch;
  private final boolean stays;
  private final AtomicLong taken = new AtomicLong(); // of the stretch, if extents stay
  private final @Nullable PrivateMemory[] large;

  /**
   * @param budget that frames are taken from, large ones included
   */
  FramePool(int count, long frameBytes, MemoryBudget budget) {
    this(count, frameBytes, budget, MemorySegment.NULL);
  }

  /**
   * @param resident memory for the whole budget, if each frame is claimed once and for good
   */
  FramePool(int count, long frameBytes, MemoryBudget budget, MemorySegment resident) {
    this.frameBytes = frameBytes;
    this.budget = budget;
    this.frames = new Frame[count];
    this.large = new PrivateMemory[count];
    for (int i = 0; i < count; i++) {
      frames[i] = new Frame();
    }
    this.stays = resident.byteSize() > 0;
    this.own = stays ? null : map(Math.max(1, count * frameBytes));
    this.stretch = own == null ? resident : own.segment();
  }

  static PrivateMemory map(long bytes) {
    try {
      return new PrivateMemory(bytes);
    } catch (IOException failed) {
      throw Failure.io("get " + bytes + " bytes of memory", failed);
    }
  }

  /** Takes a free frame for the pages of an extent; the memory that they are to be loaded into. */
  MemorySegment claim(int number, Extent pages) {
    long bytes = bytes(pages);
    budget.take(bytes);
    MemorySegment memory = memory(number, bytes);
    frames[number].claim(pages, memory);
    return memory;
  }

  private long bytes(Extent pages) {
    return Math.max(frameBytes, ExtentCuts.pageEnd(pages.length()));
  }

  private MemorySegment memory(int number, long bytes) {
    if (stays) {
      return stretch.asSlice(taken.getAndAdd(bytes), bytes);
    }
    if (bytes == frameBytes) {
      return stretch.asSlice(number * frameBytes, frameBytes);
    }
    PrivateMemory alone = map(bytes);
    large[number] = alone;
    return alone.segment();
  }

  /** A frame by its number in the plan. */
  Frame frame(int number) {
    return frames[number];
  }

  /** Ends a frame's extent: its memory, this many bytes, may be claimed again. */
  long release(int number) {
    long bytes = frames[number].release();
    PrivateMemory alone = large[number];
    if (alone != null) {
      large[number] = null;
      alone.close();
    }
    budget.give(bytes);
    return bytes;
  }

  /** Gives all memory back. Nobody may use a frame any more. */
  @Override
  public void close() {
    if (own != null) {
      own.close();
    }
    for (PrivateMemory alone : large) {
      if (alone != null) {
        alone.close();
      }
    }
  }
}
