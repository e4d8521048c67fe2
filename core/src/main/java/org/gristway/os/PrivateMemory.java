package org.gristway.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.gristway.Failure;

/**
 * Page-aligned memory outside the heap that costs nothing until it is touched. It is this process's
 * alone and goes with it, however it ends.
 */
public final class PrivateMemory implements AutoCloseable {

  private static final long LARGE_PAGE = 2 << 20;

  private final Arena arena = Arena.ofShared();
  private final MemorySegment memory;

  public PrivateMemory(long bytes) throws IOException {
    MemorySegment mapped = PosixMemory.mapPrivate(bytes);
    this.memory = mapped.reinterpret(bytes, arena, start -> PosixMemory.unmap(start, bytes));
  }

  /**
   * A table that is looked up at random, of zeros; it goes when nobody refers to it. Its pages are
   * large: those of a table of many megabytes would not fit what a processor remembers of pages,
   * and a look at it would take twice as long.
   */
  public static MemorySegment table(long bytes) {
    if (bytes < LARGE_PAGE) {
      return Arena.ofAuto().allocate(Math.max(1, bytes), Long.BYTES);
    }
    try {
      MemorySegment mapped = PosixMemory.mapPrivate(bytes);
      return mapped.reinterpret(bytes, Arena.ofAuto(), start -> PosixMemory.unmap(start, bytes));
    } catch (IOException failed) {
      throw Failure.io("get " + bytes + " bytes of memory", failed);
    }
  }

  /** Memory of zeros that goes with an arena. */
  public static MemorySegment until(Arena arena, long bytes) {
    try {
      MemorySegment mapped = PosixMemory.mapPrivate(bytes);
      return mapped.reinterpret(bytes, arena, start -> PosixMemory.unmap(start, bytes));
    } catch (IOException failed) {
      throw Failure.io("get " + bytes + " bytes of memory", failed);
    }
  }

  /** All of it. It must not be used after {@link #close}. */
  public MemorySegment segment() {
    return memory;
  }

  @Override
  public void close() {
    arena.close();
  }
}
