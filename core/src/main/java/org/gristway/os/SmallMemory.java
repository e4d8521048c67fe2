package org.gristway.os;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Pieces of memory outside the heap, of any size: for many of them, which would each waste most of
 * a page if they were mapped. Whoever has the address has the memory, so nobody is told that a
 * piece is used after it was given back: its owner sees to that.
 */
public final class SmallMemory {

  private static final MethodHandle MALLOC =
      Posix.call("malloc", FunctionDescriptor.of(ADDRESS, JAVA_LONG));
  private static final MethodHandle FREE = Posix.call("free", FunctionDescriptor.ofVoid(ADDRESS));

  private SmallMemory() {}

  /** A new piece, which holds anything. */
  public static MemorySegment allocate(long bytes) throws PosixException {
    Posix.Scratch scratch = Posix.SCRATCH.get();
    MemorySegment result;
    try {
      result = (MemorySegment) MALLOC.invokeExact(scratch.state, Math.max(1, bytes));
    } catch (Throwable thrown) {
      throw Posix.unexpected(thrown);
    }
    if (result.address() == 0) {
      throw new PosixException(scratch.errno());
    }
    return result.reinterpret(bytes);
  }

  /** A piece that was allocated, by its address. */
  public static MemorySegment at(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  /** Gives a piece back. */
  public static void free(long address) {
    try {
      FREE.invokeExact(Posix.SCRATCH.get().state, MemorySegment.ofAddress(address));
    } catch (Throwable thrown) {
      throw Posix.unexpected(thrown);
    }
  }
}
