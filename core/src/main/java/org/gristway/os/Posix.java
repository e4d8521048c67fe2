package org.gristway.os;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import org.gristway.Failure;

/**
 * The C library's file and memory calls, one method each, on Linux with 64-bit x86 or ARM.
 *
 * <p>Why not the JDK's own files: millions of small files are listed, opened, read and closed at
 * about twice the JDK's rate; names that are not text keep their bytes; direct reads land in the
 * memory the caller gives; and reserving disk space ahead or exchanging two folders has no JDK call
 * at all.
 *
 * <p>A call that fails throws {@link PosixException} with the error's number; an interrupted call
 * is made again. File descriptors are plain numbers and belong to whoever opened them. Every method
 * may be called from any thread.
 */
public final class Posix {

  /** Open flags that are the same on every architecture. */
  public static final int READ_ONLY = 0;

  public static final int READ_WRITE = 2;
  public static final int CREATE = 0x40;
  public static final int EXCLUSIVE = 0x80;

  private static final int NON_BLOCKING = 0x800;
  private static final int CLOSE_ON_EXEC = 0x80000;
  private static final boolean ARM = System.getProperty("os.arch", "").equals("aarch64");

  /** Read past the page cache. Offset, length and address must be multiples of 4096. */
  public static final int DIRECT = ARM ? 0x10000 : 0x4000;

  /** Fail with {@link PosixException#ELOOP} if the name is a symbolic link. */
  public static final int NO_LINK = ARM ? 0x8000 : 0x20000;

  private static final int DIRECTORY = ARM ? 0x4000 : 0x10000;

  /** Make a file without a name, in the folder that is named. Not every file system can. */
  public static final int NAMELESS = 0x400000 | DIRECTORY;

  /** A file that anybody may read and write, as far as the process's umask allows. */
  private static final int FOR_ALL = 0666;

  /** A file that nobody but its owner may read or write, from its first moment on. */
  private static final int FOR_OWNER = 0600;

  /** For {@link #advise}: reads come in no order, so none is worth continuing. */
  public static final int RANDOM = 1;

  /** Advice: read all of it ahead. */
  public static final int WILL_NEED = 3;

  /** Advice: take its pages out of the page cache, where nobody has them mapped or changed. */
  public static final int DONT_NEED = 4;

  /** A signal whose meaning is each program's own, SIGUSR1. */
  public static final int USER_SIGNAL = 10;

  private static final int HERE = -100; // AT_FDCWD
  private static final int NO_FOLLOW = 0x100; // AT_SYMLINK_NOFOLLOW
  private static final int EMPTY_PATH = 0x1000; // AT_EMPTY_PATH
  private static final int STATX_BASIC = 0x7ff;

  private static final Linker LINKER = Linker.nativeLinker();
  private static final SymbolLookup LIBC = LINKER.defaultLookup();
  private static final StructLayout STATE = Linker.Option.captureStateLayout();
  private static final VarHandle ERRNO =
      STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));

  private static final MethodHandle OPENAT =
      call(
          "openat",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT),
          Linker.Option.firstVariadicArg(3));
  private static final MethodHandle CLOSE =
      call("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
  private static final MethodHandle PREAD =
      call("pread", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG));
  private static final MethodHandle PWRITE =
      call("pwrite", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG));
  private static final MethodHandle FSYNC =
      call("fsync", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
  private static final MethodHandle FALLOCATE =
      call("fallocate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG));
  private static final MethodHandle STATX =
      call(
          "statx", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS));
  private static final MethodHandle ACCESS =
      call("faccessat", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT));
  private static final MethodHandle RENAMEAT2 =
      call(
          "renameat2",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, ADDRESS, JAVA_INT));
  private static final MethodHandle FLOCK =
      call("flock", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
  private static final MethodHandle GETDENTS =
      call("getdents64", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));
  private static final MethodHandle FTRUNCATE =
      call("ftruncate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));
  private static final MethodHandle FADVISE =
      call(
          "posix_fadvise",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT));
  private static final MethodHandle REALPATH =
      call("realpath", FunctionDescriptor.of(ADDRESS, ADDRESS, ADDRESS));
  private static final MethodHandle ISATTY =
      call("isatty", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

  private static final MethodHandle SIGNAL =
      call("signal", FunctionDescriptor.of(ADDRESS, JAVA_INT, ADDRESS));
  private static final MemorySegment IGNORED = MemorySegment.ofAddress(1); // SIG_IGN

  private static final MethodHandle FCNTL =
      call(
          "fcntl",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT),
          Linker.Option.firstVariadicArg(2));
  private static final int PUNCH_HOLE = 3; // and keep the size

  private static final int EINTR = 4;
  private static final int PATH_MAX = 4096;

  /** Memory that a thread's calls use for paths, results and the error number. */
  static final class Scratch {
    final MemorySegment state = Arena.ofAuto().allocate(STATE);
    final MemorySegment path = Arena.ofAuto().allocate(2 * PATH_MAX);
    final MemorySegment stat = Arena.ofAuto().allocate(256, 8);

    int errno() {
      return (int) ERRNO.get(state, 0L);
    }

    /** The path as a C string; {@code slot} 0 or 1 for calls that take two. */
    MemorySegment path(byte[] bytes, int slot) throws PosixException {
      if (bytes.length >= PATH_MAX) {
        throw new PosixException(PosixException.ENAMETOOLONG);
      }
      MemorySegment target = path.asSlice((long) slot * PATH_MAX, PATH_MAX);
      MemorySegment.copy(bytes, 0, target, JAVA_BYTE, 0, bytes.length);
      target.set(JAVA_BYTE, bytes.length, (byte) 0);
      return target;
    }
  }

  static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

  private Posix() {}

  static MethodHandle call(String name, FunctionDescriptor shape, Linker.Option... options) {
    Linker.Option[] all = new Linker.Option[options.length + 1];
    System.arraycopy(options, 0, all, 0, options.length);
    all[options.length] = Linker.Option.captureCallState("errno");
    MemorySegment symbol =
        LIBC.find(name)
            .orElseThrow(
                () ->
                    Failure.environment(
                        "the C library here has no %s; Gristway needs Linux with glibc 2.30 or"
                            + " newer, or musl 1.2.5",
                        name));
    return LINKER.downcallHandle(symbol, shape, all);
  }

  /** Opens a file, named by its bytes. */
  public static int open(byte[] path, int flags) throws PosixException {
    return openAt(path, flags | CLOSE_ON_EXEC, FOR_ALL);
  }

  /** Opens a file that, if it is made by this, nobody but its owner may open. */
  public static int openPrivate(byte[] path, int flags) throws PosixException {
    return openAt(path, flags | CLOSE_ON_EXEC, FOR_OWNER);
  }

  /** Opens a file that was listed as a regular one, without hanging should it now be a pipe. */
  public static int openToRead(byte[] path) throws PosixException {
    return openAt(path, READ_ONLY | NON_BLOCKING | CLOSE_ON_EXEC, FOR_ALL);
  }

  private static int openAt(byte[] path, int flags, int mode) throws PosixException {
    Scratch scratch = SCRATCH.get();
    MemorySegment name = scratch.path(path, 0);
    while (true) {
      int result;
      try {
        result = (int) OPENAT.invokeExact(scratch.state, HERE, name, flags, mode);
      } catch (Throwable thrown) {
        throw unexpected(thrown);
      }
      if (result >= 0) {
        return result;
      }
      retryOrThrow(scratch);
    }
  }

  /** Gives a descriptor back. */
  public static void close(int fd) throws PosixException {
    Scratch scratch = SCRATCH.get();
    try {
      // Not repeated on EINTR: Linux has freed the descriptor by then.
      int result = (int) CLOSE.invokeExact(scratch.state, fd);
      if (result < 0 && scratch.errno() != EINTR) {
        throw new PosixException(scratch.errno());
      }
    } catch (PosixException known) {
      throw known;
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  /** Reads up to {@code length} bytes; the count read, 0 at the end of the file. */
  public static int read(int fd, MemorySegment target, long length, long offset)
      throws PosixException {
    return transfer(PREAD, fd, target, length, offset);
  }

  /** Writes up to {@code length} bytes; the count written. */
  public static int write(int fd, MemorySegment source, long length, long offset)
      throws PosixException {
    return transfer(PWRITE, fd, source, length, offset);
  }

  private static int transfer(
      MethodHandle call, int fd, MemorySegment memory, long length, long offset)
      throws PosixException {
    if (length > memory.byteSize()) {
      throw new IndexOutOfBoundsException(length);
    }
    Scratch scratch = SCRATCH.get();
    while (true) {
      long result;
      try {
        result = (long) call.invokeExact(scratch.state, fd, memory, length, offset);
      } catch (Throwable thrown) {
        throw unexpected(thrown);
      }
      if (result >= 0) {
        return (int) result;
      }
      retryOrThrow(scratch);
    }
  }

  /** Makes the file's (or folder's) bytes and size durable. */
  public static void sync(int fd) throws PosixException {
    simple(
        scratch -> {
          try {
            return (int) FSYNC.invokeExact(scratch.state, fd);
          } catch (Throwable thrown) {
            throw unexpected(thrown);
          }
        });
  }

  /** Reserves the blocks of the first {@code length} bytes, so that writing them cannot fail. */
  public static void allocate(int fd, long length) throws PosixException {
    simple(
        scratch -> {
          try {
            return (int) FALLOCATE.invokeExact(scratch.state, fd, 0, 0L, length);
          } catch (Throwable thrown) {
            throw unexpected(thrown);
          }
        });
  }

  /** Sets the file's size. */
  public static void truncate(int fd, long length) throws PosixException {
    simple(
        scratch -> {
          try {
            return (int) FTRUNCATE.invokeExact(scratch.state, fd, length);
          } catch (Throwable thrown) {
            throw unexpected(thrown);
          }
        });
  }

  /** Tells what is going to be done with the file's pages in the page cache. */
  public static void advise(int fd, int advice) {
    try {
      int unused = (int) FADVISE.invokeExact(SCRATCH.get().state, fd, 0L, 0L, advice);
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  /** Gives the memory or the disk blocks of a stretch of a file back; it reads as zeros then. */
  public static void punchHole(int fd, long offset, long length) throws PosixException {
    simple(
        scratch -> {
          try {
            return (int) FALLOCATE.invokeExact(scratch.state, fd, PUNCH_HOLE, offset, length);
          } catch (Throwable thrown) {
            throw unexpected(thrown);
          }
        });
  }

  /** Ends direct reads of an open file: from here on it is read through the page cache. */
  static void readThroughPageCache(int fd) throws PosixException {
    simple(
        scratch -> {
          try {
            return (int) FCNTL.invokeExact(scratch.state, fd, 4, READ_ONLY); // F_SETFL
          } catch (Throwable thrown) {
            throw unexpected(thrown);
          }
        });
  }

  /** What a path names; a symbolic link is followed if {@code follow}. */
  public static FileStatus status(byte[] path, boolean follow) throws PosixException {
    Scratch scratch = SCRATCH.get();
    return statx(scratch, HERE, scratch.path(path, 0), follow ? 0 : NO_FOLLOW);
  }

  /** What an open descriptor refers to. */
  public static FileStatus status(int fd) throws PosixException {
    Scratch scratch = SCRATCH.get();
    return statx(scratch, fd, scratch.path(new byte[0], 0), EMPTY_PATH);
  }

  private static FileStatus statx(Scratch scratch, int fd, MemorySegment path, int flags)
      throws PosixException {
    while (true) {
      int result;
      try {
        result = (int) STATX.invokeExact(scratch.state, fd, path, flags, STATX_BASIC, scratch.stat);
      } catch (Throwable thrown) {
        throw unexpected(thrown);
      }
      if (result == 0) {
        return FileStatus.fromStatx(scratch.stat);
      }
      retryOrThrow(scratch);
    }
  }

  /** True if this process may read the file. */
  public static boolean mayRead(byte[] path) throws PosixException {
    Scratch scratch = SCRATCH.get();
    MemorySegment name = scratch.path(path, 0);
    try {
      return (int) ACCESS.invokeExact(scratch.state, HERE, name, 4, 0) == 0;
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  /** Takes the names in a folder, in the file system's own order, without "." and "..". */
  public interface NameVisitor {
    void visit(byte[] name) throws IOException;
  }

  /** Lists a folder. */
  public static void list(byte[] path, NameVisitor visitor) throws IOException {
    int fd = openAt(path, READ_ONLY | DIRECTORY | CLOSE_ON_EXEC, FOR_ALL);
    try (Arena arena = Arena.ofConfined()) {
      // Not readdir: it tells an error from the end only by an errno that nobody can reset here.
      MemorySegment buffer = arena.allocate(1 << 15, 8);
      for (long filled = entries(fd, buffer); filled > 0; filled = entries(fd, buffer)) {
        for (long at = 0; at < filled; at += Short.toUnsignedInt(buffer.get(JAVA_SHORT, at + 16))) {
          byte[] name = entryName(buffer.asSlice(at));
          boolean self = name.length == 1 && name[0] == '.';
          boolean parent = name.length == 2 && name[0] == '.' && name[1] == '.';
          if (!self && !parent) {
            visitor.visit(name);
          }
        }
      }
    } finally {
      close(fd);
    }
  }

  private static long entries(int fd, MemorySegment buffer) throws PosixException {
    Scratch scratch = SCRATCH.get();
    while (true) {
      long result;
      try {
        result = (long) GETDENTS.invokeExact(scratch.state, fd, buffer, buffer.byteSize());
      } catch (Throwable thrown) {
        throw unexpected(thrown);
      }
      if (result >= 0) {
        return result;
      }
      retryOrThrow(scratch);
    }
  }

  /** struct linux_dirent64: ino 8, off 8, length of the record 2, type 1, name from byte 19. */
  private static byte[] entryName(MemorySegment entry) {
    int length = 0;
    while (entry.get(JAVA_BYTE, 19 + length) != 0) {
      length++;
    }
    return entry.asSlice(19, length).toArray(JAVA_BYTE);
  }

  /** The path with every link resolved. */
  public static byte[] realPath(byte[] path) throws PosixException {
    Scratch scratch = SCRATCH.get();
    MemorySegment from = scratch.path(path, 0);
    MemorySegment to = scratch.path.asSlice(PATH_MAX, PATH_MAX);
    MemorySegment result;
    try {
      result = (MemorySegment) REALPATH.invokeExact(scratch.state, from, to);
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
    if (result.address() == 0) {
      throw new PosixException(scratch.errno());
    }
    int length = 0;
    while (to.get(JAVA_BYTE, length) != 0) {
      length++;
    }
    return to.asSlice(0, length).toArray(JAVA_BYTE);
  }

  /** Exchanges what two paths name, in one step. */
  public static void exchange(byte[] one, byte[] other) throws PosixException {
    Scratch scratch = SCRATCH.get();
    MemorySegment from = scratch.path(one, 0);
    MemorySegment to = scratch.path(other, 1);
    int result;
    try {
      result = (int) RENAMEAT2.invokeExact(scratch.state, HERE, from, HERE, to, 2);
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
    if (result < 0) {
      throw new PosixException(scratch.errno());
    }
  }

  /** Locks the open file for this descriptor alone; false if another one has it. */
  public static boolean tryLock(int fd) throws PosixException {
    Scratch scratch = SCRATCH.get();
    while (true) {
      int result;
      try {
        result = (int) FLOCK.invokeExact(scratch.state, fd, 2 | 4); // LOCK_EX | LOCK_NB
      } catch (Throwable thrown) {
        throw unexpected(thrown);
      }
      if (result == 0) {
        return true;
      }
      if (scratch.errno() == PosixException.EWOULDBLOCK) {
        return false;
      }
      retryOrThrow(scratch);
    }
  }

  /** True if the descriptor is a terminal. */
  public static boolean isTerminal(int fd) {
    try {
      return (int) ISATTY.invokeExact(SCRATCH.get().state, fd) == 1;
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  /** Ignores a signal from now on, which otherwise ends this process. */
  public static void ignore(int signal) {
    try {
      MemorySegment _ = (MemorySegment) SIGNAL.invokeExact(SCRATCH.get().state, signal, IGNORED);
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  private interface Call {
    int make(Scratch scratch);
  }

  private static void simple(Call call) throws PosixException {
    Scratch scratch = SCRATCH.get();
    while (call.make(scratch) < 0) {
      retryOrThrow(scratch);
    }
  }

  private static void retryOrThrow(Scratch scratch) throws PosixException {
    int errno = scratch.errno();
    if (errno != EINTR) {
      throw new PosixException(errno);
    }
  }

  /** A downcall handle declares Throwable but throws nothing that is not a bug. */
  static RuntimeException unexpected(Throwable thrown) {
    if (thrown instanceof Error error) {
      throw error;
    }
    return thrown instanceof RuntimeException known ? known : new IllegalStateException(thrown);
  }
}
