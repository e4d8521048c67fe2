package org.gristway.os;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;

/**
 * An open file, read and written at given offsets straight from and to native memory.
 *
 * <p>Any number of threads may read and write at once; closing is for one of them, when the others
 * are done.
 */
public final class NativeFile implements AutoCloseable {

  /** Direct reads want offset, length and address to be multiples of this. */
  public static final int DIRECT_ALIGNMENT = 4096;

  private final Path path;
  private final int fd;
  private volatile boolean direct;

  private NativeFile(Path path, int fd, boolean direct) {
    this.path = path;
    this.fd = fd;
    this.direct = direct;
  }

  /** Opens an existing file for reading. */
  public static NativeFile openToRead(Path path) throws IOException {
    return new NativeFile(path, Posix.open(bytes(path), Posix.READ_ONLY), false);
  }

  /**
   * Opens an existing file for reading past the page cache, or through it where that is refused.
   */
  public static NativeFile openDirect(Path path) throws IOException {
    try {
      int fd = Posix.open(bytes(path), Posix.READ_ONLY | Posix.DIRECT);
      return new NativeFile(path, fd, true);
    } catch (PosixException refused) {
      if (refused.number() != PosixException.EINVAL) {
        throw refused;
      }
      return openToRead(path); // tmpfs and some network file systems have no direct reads
    }
  }

  /** Opens an existing file for reading and writing. */
  public static NativeFile openToWrite(Path path) throws IOException {
    return new NativeFile(path, Posix.open(bytes(path), Posix.READ_WRITE), false);
  }

  /** Creates a file that must not exist yet. */
  public static NativeFile create(Path path) throws IOException {
    int fd = Posix.open(bytes(path), Posix.READ_WRITE | Posix.CREATE | Posix.EXCLUSIVE);
    return new NativeFile(path, fd, false);
  }

  /**
   * Creates a file that has no name in its folder, so that it goes with its last descriptor. Nobody
   * but its owner can open it, at any moment.
   */
  public static NativeFile createNameless(Path folder) throws IOException {
    try {
      int fd = Posix.openPrivate(bytes(folder), Posix.READ_WRITE | Posix.NAMELESS);
      return new NativeFile(folder, fd, false);
    } catch (PosixException refused) {
      if (refused.number() != PosixException.EOPNOTSUPP
          && refused.number() != PosixException.EISDIR) {
        throw refused;
      }
      return createAndUnname(folder);
    }
  }

  /** For file systems that have no files without names, such as NFS: it has one for a moment. */
  static NativeFile createAndUnname(Path folder) throws IOException {
    Path path = folder.resolve(".gristway-" + UUID.randomUUID());
    int fd = Posix.openPrivate(bytes(path), Posix.READ_WRITE | Posix.CREATE | Posix.EXCLUSIVE);
    try {
      Files.delete(path);
    } catch (IOException failed) {
      Posix.close(fd);
      throw failed;
    }
    return new NativeFile(folder, fd, false);
  }

  /** The path it was opened by; that of its folder if it has no name. */
  public Path path() {
    return path;
  }

  /** The number by which the process knows the open file. */
  int descriptor() {
    return fd;
  }

  /** True if reads go past the page cache and must be aligned. */
  public boolean isDirect() {
    return direct;
  }

  public long size() throws IOException {
    return Posix.status(fd).size();
  }

  /**
   * Gives the file this size and the disk blocks for it: whoever writes or maps it later cannot run
   * out of space.
   */
  public void allocate(long size) throws IOException {
    if (size == 0) {
      return;
    }
    try {
      Posix.allocate(fd, size);
    } catch (PosixException refused) {
      if (refused.number() != PosixException.EOPNOTSUPP) {
        throw refused;
      }
      fillWithZeros(size);
    }
  }

  /**
   * Gives the file this size, and the disk blocks for it where the file system can reserve them.
   */
  public void reserve(long size) throws IOException {
    try {
      Posix.allocate(fd, size);
    } catch (PosixException refused) {
      if (refused.number() != PosixException.EOPNOTSUPP) {
        throw refused;
      }
      Posix.truncate(fd, size);
    }
  }

  /** Has the whole file read into the page cache, without waiting for it. */
  public void readAhead() {
    Posix.advise(fd, Posix.WILL_NEED);
  }

  /** Tells that reads come in no order: what follows one is then not read along with it. */
  public void expectRandomReads() {
    Posix.advise(fd, Posix.RANDOM);
  }

  /** Lets what is read next come from the disk, not from the page cache, as far as possible. */
  public void forget() {
    Posix.advise(fd, Posix.DONT_NEED);
  }

  private void fillWithZeros(long size) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment zeros = arena.allocate(1 << 20);
      for (long at = 0; at < size; at += zeros.byteSize()) {
        write(zeros, Math.min(zeros.byteSize(), size - at), at);
      }
    }
  }

  /** Reads up to {@code length} bytes; fewer only at the end of the file. */
  public long read(MemorySegment target, long length, long offset) throws IOException {
    long done = 0;
    while (done < length) {
      int count = readOnce(target.asSlice(done), length - done, offset + done);
      if (count == 0) {
        return done;
      }
      done += count;
      if (direct && count % DIRECT_ALIGNMENT != 0) {
        if (offset + done >= size()) {
          return done;
        }
        done = readOnFrom(done, count);
      }
    }
    return done;
  }

  /**
   * Where to read on, after a direct read that gave less than there is, as network file systems and
   * those of user space do: at the last whole page. If there is none, through the page cache.
   *
   * @param count of the bytes that the last read gave
   */
  private long readOnFrom(long done, int count) throws IOException {
    if (count < DIRECT_ALIGNMENT) {
      Posix.readThroughPageCache(fd);
      direct = false;
      return done;
    }
    return done & -DIRECT_ALIGNMENT;
  }

  /** Some file systems let a file be opened for direct reads, and then refuse to do them. */
  private int readOnce(MemorySegment target, long length, long offset) throws IOException {
    boolean wasDirect = direct; // by now another thread may have found out
    try {
      return Posix.read(fd, target, length, offset);
    } catch (PosixException refused) {
      if (!wasDirect || refused.number() != PosixException.EINVAL) {
        throw refused;
      }
      Posix.readThroughPageCache(fd);
      direct = false;
      return Posix.read(fd, target, length, offset);
    }
  }

  /** Reads exactly {@code length} bytes. */
  public void readFully(MemorySegment target, long length, long offset) throws IOException {
    if (read(target, length, offset) < length) {
      throw new EOFException("the file ends before byte " + (offset + length));
    }
  }

  /** Writes all {@code length} bytes. */
  public void write(MemorySegment source, long length, long offset) throws IOException {
    long done = 0;
    while (done < length) {
      done += Posix.write(fd, source.asSlice(done), length - done, offset + done);
    }
  }

  /** Gives the disk blocks inside a stretch back, where the file system can; it reads as zeros. */
  public void discard(long offset, long length) throws IOException {
    try {
      Posix.punchHole(fd, offset, length);
    } catch (PosixException refused) {
      if (refused.number() != PosixException.EOPNOTSUPP) {
        throw refused;
      }
    }
  }

  /** Cuts everything off. */
  public void empty() throws IOException {
    Posix.truncate(fd, 0);
  }

  /** Returns when everything written is durable. */
  public void sync() throws IOException {
    Posix.sync(fd);
  }

  @Override
  public void close() throws IOException {
    Posix.close(fd);
  }

  static byte[] bytes(Path path) {
    return path.toString().getBytes(StandardCharsets.UTF_8);
  }
}
