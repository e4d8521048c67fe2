package org.gristway.os;

import java.io.IOException;
import java.util.function.Consumer;

/**
 * An open file and how many use it now. It is closed when it has been given up and the last use has
 * ended, so no thread ever reads from a descriptor that is another file's by then. Any thread may
 * call.
 */
final class KeptFile {

  private final NativeFile file;
  private final Descriptors descriptors;
  private final Consumer<IOException> closeFailures;
  private int uses = 1; // of whoever has opened it
  private boolean used;
  private boolean givenUp;

  KeptFile(NativeFile file, Descriptors descriptors, Consumer<IOException> closeFailures) {
    this.file = file;
    this.descriptors = descriptors;
    this.closeFailures = closeFailures;
  }

  NativeFile file() {
    return file;
  }

  /** Begins a use; false if the file is closed, or about to be. */
  synchronized boolean begin() {
    if (givenUp) {
      return false;
    }
    uses++;
    used = true;
    return true;
  }

  /** Ends a use. */
  void end() {
    boolean closes;
    synchronized (this) {
      uses--;
      closes = uses == 0 && givenUp;
    }
    if (closes) {
      close();
      descriptors.giveBack(this);
    } else {
      descriptors.tellUnused();
    }
  }

  /** Closes it: now, or when the last use ends. */
  void giveUp() {
    boolean closes;
    synchronized (this) {
      closes = uses == 0 && !givenUp;
      givenUp = true;
    }
    if (closes) {
      close();
      descriptors.giveBack(this);
    }
  }

  /** Closes it; false if somebody uses it. */
  synchronized boolean closesIfUnused() {
    if (uses > 0 || givenUp) {
      return false;
    }
    givenUp = true;
    close();
    return true;
  }

  /** True if it was used since this was asked last. */
  synchronized boolean wasUsed() {
    boolean was = used;
    used = false;
    return was;
  }

  private void close() {
    try {
      file.close();
    } catch (IOException failed) {
      closeFailures.accept(failed);
    }
  }
}
