package org.gristway.cli;

import java.io.IOException;
import java.util.Locale;
import org.gristway.Failure;

/** Standard output takes no more. A type of its own: nothing else that fails may end quietly. */
final class OutputException extends IOException {

  OutputException(IOException cause) {
    super(Failure.reason(cause), cause);
  }

  /** True if the reader has had enough, as {@code head} has: that is no failure. */
  boolean isClosedPipe() {
    String reason = String.valueOf(getMessage()).toLowerCase(Locale.ROOT);
    return reason.contains("broken pipe") || reason.contains("connection reset");
  }
}
