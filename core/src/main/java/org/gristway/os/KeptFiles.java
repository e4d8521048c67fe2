package org.gristway.os;

import java.io.IOException;
import java.util.concurrent.ConcurrentHashMap;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * Numbered files that stay open from one use to the next, as far as the process may have files
 * open: all that are kept in a process share one budget. Any thread may use them, several at once.
 */
public final class KeptFiles implements AutoCloseable {

  /** Opens the file of a number. */
  public interface Opener {
    NativeFile open(int number) throws IOException;
  }

  /** Something done to an open file. It must not use another one. */
  public interface Action {
    void with(NativeFile file) throws IOException;
  }

  private final Opener opener;
  private final Descriptors descriptors;
  // A file that was closed to make room stays in here until it is opened again.
  private final ConcurrentHashMap<Integer, KeptFile> files = new ConcurrentHashMap<>();
  private volatile @Nullable IOException closeFailure;

  public KeptFiles(Opener opener) {
    this(opener, Descriptors.OF_PROCESS);
  }

  KeptFiles(Opener opener, Descriptors descriptors) {
    this.opener = opener;
    this.descriptors = descriptors;
  }

  /** Does something to a file, which is opened if it is not open. */
  public void with(int number, Action action) throws IOException {
    KeptFile known = files.get(number);
    KeptFile file = known != null && known.begin() ? known : open(number);
    try {
      action.with(file.file());
    } finally {
      file.end();
    }
  }

  /** Forgets an open file, so that its next use opens it anew: it may be of no use any more. */
  public void forget(int number) {
    KeptFile known = files.remove(number);
    if (known != null) {
      known.giveUp();
    }
  }

  private KeptFile open(int number) throws IOException {
    descriptors.take();
    KeptFile file;
    try {
      file = new KeptFile(openAtAll(number), descriptors, failed -> closeFailure = failed);
    } catch (Throwable failed) {
      descriptors.giveBack();
      throw failed;
    }
    descriptors.keep(file);
    KeptFile before = files.put(number, file);
    if (before != null) {
      before.giveUp(); // another thread has opened it at the same time
    }
    return file;
  }

  /** Opens a file; if others have all the descriptors, with one that is kept without need. */
  private NativeFile openAtAll(int number) throws IOException {
    try {
      return opener.open(number);
    } catch (IOException | Failure failed) {
      if (!isOutOfDescriptors(failed)) {
        throw failed;
      }
    }
    descriptors.closeUnused();
    return opener.open(number);
  }

  private static boolean isOutOfDescriptors(@Nullable Throwable failed) {
    return failed instanceof PosixException cause
        ? cause.number() == PosixException.EMFILE || cause.number() == PosixException.ENFILE
        : failed != null && isOutOfDescriptors(failed.getCause());
  }

  /**
   * What has failed when a file was closed; null if nothing has. For whoever writes: some network
   * file systems tell only then that something was not written.
   */
  public @Nullable IOException closeFailure() {
    return closeFailure;
  }

  /** Closes all; those that are in use when their use ends. Nothing may be used after that. */
  @Override
  public void close() {
    files.values().forEach(KeptFile::giveUp);
    files.clear();
  }
}
