package org.gristway.os;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/**
 * The system's calls for memory; {@link PrivateMemory} and {@link SharedMemory} own what they give.
 */
final class PosixMemory {

  private static final MethodHandle PAGE_SIZE =
      Posix.call("getpagesize", FunctionDescriptor.of(JAVA_INT));
  private static final MethodHandle MEMFD_CREATE =
      Posix.call("memfd_create", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
  private static final MethodHandle MMAP =
      Posix.call(
          "mmap",
          FunctionDescriptor.of(
              ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG));
  private static final MethodHandle MUNMAP =
      Posix.call("munmap", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG));
  private static final MethodHandle MADVISE =
      Posix.call("madvise", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));

  private static final int MAP_SHARED = 1;
  private static final int MAP_PRIVATE = 2;
  private static final int MAP_ANONYMOUS = 0x20;
  private static final int READ_AND_WRITE = 3; // PROT_READ | PROT_WRITE
  private static final int HUGE_PAGES = 14; // MADV_HUGEPAGE
  private static final int NOT_NEEDED = 4; // MADV_DONTNEED

  private PosixMemory() {}

  /** What mappings are aligned to. */
  static int pageSize() {
    try {
      return (int) PAGE_SIZE.invokeExact(Posix.SCRATCH.get().state);
    } catch (Throwable thrown) {
      throw Posix.unexpected(thrown);
    }
  }

  /** Said where a container's filter of system calls leaves this one out. */
  static final String NO_MEMORY_FILES =
      "the system call memfd_create is not allowed here; have the container's seccomp profile allow"
          + " it";

  /** Makes a file that has no name anywhere and is gone with its last descriptor and mapping. */
  static int createMemoryFile(String name) throws PosixException {
    Posix.Scratch scratch = Posix.SCRATCH.get();
    MemorySegment text = scratch.path(name.getBytes(StandardCharsets.UTF_8), 0);
    int result;
    try {
      result = (int) MEMFD_CREATE.invokeExact(scratch.state, text, 1); // MFD_CLOEXEC
    } catch (Throwable thrown) {
      throw Posix.unexpected(thrown);
    }
    if (result < 0) {
      int number = scratch.errno();
      throw number == PosixException.ENOSYS
          ? new PosixException(number, NO_MEMORY_FILES)
          : new PosixException(number);
    }
    return result;
  }

  /** Maps memory of this process alone: zeros, which cost nothing until they are touched. */
  static MemorySegment mapPrivate(long length) throws PosixException {
    MemorySegment mapped = map(-1, 0, length, MAP_PRIVATE | MAP_ANONYMOUS);
    try {
      // Fewer, larger pages: a direct read into them is one request instead of several.
      int unused = (int) MADVISE.invokeExact(Posix.SCRATCH.get().state, mapped, length, HUGE_PAGES);
    } catch (Throwable thrown) {
      throw Posix.unexpected(thrown);
    }
    return mapped;
  }

  /** Maps a stretch of a file, shared with whoever else maps it. */
  static MemorySegment mapShared(int fd, long offset, long length) throws PosixException {
    return map(fd, offset, length, MAP_SHARED);
  }

  /** Takes pages of a mapped file out of this process's memory, until they are touched again. */
  static void forget(MemorySegment pages) {
    try {
      int unused =
          (int) MADVISE.invokeExact(Posix.SCRATCH.get().state, pages, pages.byteSize(), NOT_NEEDED);
    } catch (Throwable thrown) {
      throw Posix.unexpected(thrown);
    }
  }

  private static MemorySegment map(int fd, long offset, long length, int kind)
      throws PosixException {
    Posix.Scratch scratch = Posix.SCRATCH.get();
    MemorySegment result;
    try {
      result =
          (MemorySegment)
              MMAP.invokeExact(
                  scratch.state, MemorySegment.NULL, length, READ_AND_WRITE, kind, fd, offset);
    } catch (Throwable thrown) {
      throw Posix.unexpected(thrown);
    }
    if (result.address() == -1) {
      throw new PosixException(scratch.errno());
    }
    return result;
  }

  static void unmap(MemorySegment mapped, long length) {
    try {
      int unused = (int) MUNMAP.invokeExact(Posix.SCRATCH.get().state, mapped, length);
    } catch (Throwable thrown) {
      throw Posix.unexpected(thrown);
    }
  }
}
