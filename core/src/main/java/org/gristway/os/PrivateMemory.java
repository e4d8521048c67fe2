package org.gristway.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Page-aligned memory outside the heap that costs nothing until it is touched. It is this process's
 * alone and goes with it, however it ends.
 */
public final class PrivateMemory implements AutoCloseable {

  private final Arena arena = Arena.ofShared();
  private final MemorySegment memory;

  public PrivateMemory(long bytes) throws IOException {
    MemorySegment mapped = PosixMemory.mapPrivate(bytes);
    this.memory = mapped.reinterpret(bytes, arena, start -> PosixMemory.unmap(start, bytes));
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
