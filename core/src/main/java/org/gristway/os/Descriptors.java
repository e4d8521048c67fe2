package org.gristway.os;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The descriptors that a process may have for files it keeps open: one budget, whoever keeps them.
 * With none left, a file that nobody uses is closed; if all are in use, one waits. So the number of
 * users changes how often files are opened, and never whether a read succeeds.
 *
 * <p>Nobody may wait for a descriptor while using one: that could wait for ever. Any thread may
 * call.
 */
final class Descriptors {

  /**
   * A third of what the process may have open: the rest is for sockets, shared memory and the JVM,
   * which raises the soft limit to the hard one when it starts.
   */
  static final Descriptors OF_PROCESS = new Descriptors(limit() / 3);

  /** What every system allows. */
  private static final long USUAL_LIMIT = 256;

  private final long most;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  // Those that were not used of late come first, roughly.
  private final LinkedHashSet<KeptFile> kept = new LinkedHashSet<>();
  private long taken;
  private volatile int waiting;

  Descriptors(long most) {
    this.most = Math.max(1, most);
  }

  private static long limit() {
    try {
      for (String line : Files.readAllLines(Path.of("/proc/self/limits"))) {
        if (line.startsWith("Max open files")) {
          String soft = line.split("\\s+")[3];
          return soft.equals("unlimited") ? Integer.MAX_VALUE : Long.parseLong(soft);
        }
      }
    } catch (IOException | NumberFormatException unknown) {
      // Then as many as any system allows.
    }
    return USUAL_LIMIT;
  }

  /** How many there are. */
  long most() {
    return most;
  }

  /** Takes a descriptor for a file that is about to be opened. */
  void take() {
    lock.lock();
    try {
      waiting++; // before looking: whoever ends a use after that tells
      while (taken >= most && !closeOldest()) {
        changed.awaitUninterruptibly();
      }
      waiting--;
      taken++;
    } finally {
      lock.unlock();
    }
  }

  /** Says which file has the descriptor: it may be closed when nobody uses it. */
  void keep(KeptFile file) {
    lock.lock();
    try {
      kept.add(file);
    } finally {
      lock.unlock();
    }
  }

  /** Takes a descriptor back that no file has. */
  void giveBack() {
    lock.lock();
    try {
      taken--;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Takes the descriptor of a closed file back. */
  void giveBack(KeptFile file) {
    lock.lock();
    try {
      kept.remove(file);
      giveBack();
    } finally {
      lock.unlock();
    }
  }

  /** Tells those who wait that a file is not used any more. */
  void tellUnused() {
    if (waiting > 0) {
      lock.lock();
      try {
        changed.signalAll();
      } finally {
        lock.unlock();
      }
    }
  }

  /** Closes all files that nobody uses: the process has no descriptor left for something else. */
  void closeUnused() {
    lock.lock();
    try {
      kept.removeIf(
          file -> {
            boolean closes = file.closesIfUnused();
            taken -= closes ? 1 : 0;
            return closes;
          });
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Closes the file that was not used for longest, roughly; false if all are in use. */
  private boolean closeOldest() {
    for (long looks = 2L * kept.size(); looks > 0; looks--) {
      KeptFile first = kept.getFirst();
      kept.remove(first);
      if (!first.wasUsed() && first.closesIfUnused()) {
        taken--;
        return true;
      }
      kept.add(first); // a second chance, behind all others
    }
    return false;
  }
}
