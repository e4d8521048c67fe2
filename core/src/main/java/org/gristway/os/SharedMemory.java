package org.gristway.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Memory that other processes of the same user can map: a file without a name, which is gone when
 * its last process is, however that ends. They open it as {@code /proc/<process>/fd/<number>}.
 */
public final class SharedMemory implements AutoCloseable {

  private static final int PAGE = PosixMemory.pageSize();

  private final int fd;
  private final Arena arena = Arena.ofShared();
  private long size;

  private SharedMemory(int fd, long size) {
    this.fd = fd;
    this.size = size;
  }

  /** Makes an empty one. The name shows in {@code /proc} and means nothing else. */
  public static SharedMemory create(String name) throws IOException {
    return new SharedMemory(PosixMemory.createMemoryFile(name), 0);
  }

  /** Opens that of another process. */
  public static SharedMemory open(Path procEntry) throws IOException {
    int fd = Posix.open(procEntry.toString().getBytes(StandardCharsets.UTF_8), Posix.READ_WRITE);
    return new SharedMemory(fd, Posix.status(fd).size());
  }

  /** How another process opens it while this one lives. */
  public Path path() {
    return Path.of("/proc/" + ProcessHandle.current().pid() + "/fd/" + fd);
  }

  public synchronized long size() {
    return size;
  }

  /** A stretch of it, mapped until {@link #close}. */
  public MemorySegment map(long offset, long bytes) throws IOException {
    return map(offset, bytes, arena);
  }

  /** A stretch of it, mapped until the arena is closed. */
  public MemorySegment map(long offset, long bytes, Arena until) throws IOException {
    long length = Math.max(1, bytes);
    return PosixMemory.mapShared(fd, offset, length)
        .reinterpret(length, until, start -> PosixMemory.unmap(start, length));
  }

  /** Makes it longer by some bytes, rounded up to whole pages; where they begin. */
  public synchronized long extend(long bytes) throws IOException {
    long start = size;
    size += (bytes + PAGE - 1) & -PAGE;
    Posix.truncate(fd, size);
    return start;
  }

  /**
   * Gives the memory of a stretch back to the system; what others have mapped of it turns to zeros.
   */
  public void discard(long offset, long bytes) throws IOException {
    Posix.punchHole(fd, offset, (bytes + PAGE - 1) & -PAGE);
  }

  @Override
  public void close() throws IOException {
    arena.close();
    Posix.close(fd);
  }
}
