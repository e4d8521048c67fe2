package org.gristway.os;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.gristway.Failure;

/**
 * A lock file held by one holder at a time. The system releases it when its holder's process dies,
 * however it dies; the file is deleted on release, and one that a kill left behind locks nobody
 * out.
 */
public final class ExclusiveLock implements AutoCloseable {

  /** Holders come and go between one look and the next, but not so many. */
  private static final int MOST_TRIES = 1000;

  private final Path path;
  private final int fd;

  private ExclusiveLock(Path path, int fd) {
    this.path = path;
    this.fd = fd;
  }

  /**
   * Takes the lock, or returns nothing if somebody else holds it. The file belongs to the holder
   * alone, and a link in its place is refused: whoever may write to the folder could otherwise have
   * the holder make a file anywhere.
   */
  public static Optional<ExclusiveLock> tryTake(Path path) throws IOException {
    byte[] name = NativeFile.bytes(path);
    for (int i = 0; i < MOST_TRIES; i++) {
      int fd = open(path, name);
      if (!Posix.tryLock(fd)) {
        Posix.close(fd);
        return Optional.empty();
      }
      if (isStillNamed(name, fd)) {
        return Optional.of(new ExclusiveLock(path, fd));
      }
      Posix.close(fd); // its former holder deleted the file between our open and our lock
    }
    throw Failure.environment(
        "%s is made and deleted by others all the time; find out by whom, and try again", path);
  }

  private static int open(Path path, byte[] name) throws IOException {
    try {
      return Posix.openPrivate(name, Posix.READ_WRITE | Posix.CREATE | Posix.NO_LINK);
    } catch (PosixException refused) {
      if (refused.number() == PosixException.ELOOP && Files.isSymbolicLink(path)) {
        throw Failure.environment(
            "%s is a link to %s, and a lock file must not be a link; delete it",
            path, Files.readSymbolicLink(path));
      }
      throw refused;
    }
  }

  private static boolean isStillNamed(byte[] path, int fd) throws IOException {
    try {
      return Posix.status(path, false).isSameFileAs(Posix.status(fd));
    } catch (PosixException gone) {
      if (gone.number() == PosixException.ENOENT) {
        return false;
      }
      throw gone;
    }
  }

  @Override
  public void close() throws IOException {
    try {
      // While still held, so that nobody waits on a nameless file; and only if it is still ours:
      // its folder may have been exchanged for another.
      if (isStillNamed(NativeFile.bytes(path), fd)) {
        Files.deleteIfExists(path);
      }
    } finally {
      Posix.close(fd);
    }
  }
}
