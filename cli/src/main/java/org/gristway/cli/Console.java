package org.gristway.cli;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.gristway.Progress;
import org.gristway.os.Posix;
import org.jspecify.annotations.Nullable;

/**
 * Where a command writes: results to standard output, in UTF-8 whatever the locale says, and
 * everything else to standard error.
 */
final class Console {

  private static final int BUFFER = 1 << 16;
  private static final int DEFAULT_COLUMNS = 80;

  private final OutputStream out;
  private final PrintStream err;
  private @Nullable ProgressBar bar;

  Console(OutputStream out, OutputStream err) {
    this.out = new BufferedOutputStream(out, BUFFER);
    this.err = new PrintStream(err, true, StandardCharsets.UTF_8);
  }

  static Console standard() {
    return new Console(new StandardOutput(), new FileOutputStream(FileDescriptor.err));
  }

  /** Standard output, buffered. */
  OutputStream out() {
    return out;
  }

  /** A line of the result. */
  void print(String line) throws IOException {
    out.write(line.getBytes(StandardCharsets.UTF_8));
    out.write('\n');
  }

  void flush() throws IOException {
    out.flush();
  }

  /** A line on standard error, which begins with the program's name. */
  void complain(String message) {
    String line = "gristway: " + Text.oneLine(message);
    if (bar == null) {
      err.println(line);
    } else {
      bar.printAbove(line);
    }
  }

  /** The stack trace, for whoever has asked for it. */
  void trace(Throwable thrown) {
    thrown.printStackTrace(err);
  }

  /** Shows progress on a terminal, and nothing anywhere else. */
  Progress progress() {
    if (bar == null && Posix.isTerminal(2)) {
      bar = new ProgressBar(err, columns(), System::nanoTime);
      Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().unstarted(bar::stop));
    }
    return bar == null ? Progress.NONE : bar;
  }

  /** Takes the progress bar away, if there is one: an error may come in the middle of the work. */
  void endProgress() {
    if (bar != null) {
      bar.end();
    }
  }

  private static int columns() {
    try {
      String columns = System.getenv("COLUMNS");
      return columns == null ? DEFAULT_COLUMNS : Integer.parseInt(columns);
    } catch (NumberFormatException odd) {
      return DEFAULT_COLUMNS;
    }
  }
}
