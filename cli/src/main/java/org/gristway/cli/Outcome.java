package org.gristway.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.gristway.Failure;

/**
 * What the end of a command means to whoever called it: an exit code, and one line if something is
 * wrong. Stack traces go to a log, or to standard error for those who ask with {@code --debug}.
 */
final class Outcome {

  static final int DAMAGED = Failure.Kind.DAMAGED.number();
  static final int ENVIRONMENT = Failure.Kind.ENVIRONMENT.number();

  /** What sysexits.h calls an internal software error. */
  static final int BUG = 70;

  private final Console console;
  private final String[] args;

  Outcome(Console console, String[] args) {
    this.console = console;
    this.args = args;
  }

  /** Tells what has been thrown, and returns the exit code. */
  int of(Throwable thrown) {
    if (isShuttingDown()) {
      return 130; // whoever has pressed Ctrl-C knows why this ends
    }
    console.endProgress();
    return switch (thrown) {
      case OutputException closed when closed.isClosedPipe() -> 0;
      case Failure failure ->
          tell(failure.kind().number(), String.valueOf(failure.getMessage()), thrown);
      case ExceptionInInitializerError wrapper when wrapper.getCause() instanceof Failure failure ->
          of(failure);
      case OutOfMemoryError full -> tell(ENVIRONMENT, memoryAdvice(full), thrown);
      case InternalError cutOff when isFaultOfMappedFile(cutOff) ->
          tell(
              DAMAGED,
              "a file of the dataset was cut off or could not be read while it was in use; check it"
                  + " with 'gristway verify'",
              thrown);
      case OutputException failed ->
          tell(ENVIRONMENT, "cannot write the output: " + failed.getMessage(), thrown);
      case UncheckedIOException wrapper when wrapper.getCause() instanceof IOException failed ->
          of(failed);
      case IOException failed -> tell(ENVIRONMENT, Failure.reason(failed), thrown);
      default -> tell(BUG, bugReport(thrown), thrown);
    };
  }

  private int tell(int status, String message, Throwable thrown) {
    try {
      console.flush(); // what came before the error stands before it
    } catch (IOException broken) {
      // The error at hand is the one to tell.
    }
    console.complain(message);
    if (Arrays.asList(args).contains("--debug")) {
      console.trace(thrown);
    }
    return status;
  }

  /** The JVM has no other way to ask. */
  static boolean isShuttingDown() {
    try {
      Thread hook = new Thread();
      Runtime.getRuntime().addShutdownHook(hook);
      Runtime.getRuntime().removeShutdownHook(hook);
      return false;
    } catch (IllegalStateException underWay) {
      return true;
    }
  }

  private static String memoryAdvice(OutOfMemoryError full) {
    long given = Math.max(1, Runtime.getRuntime().maxMemory() >> 20);
    return "not enough memory ("
        + full.getMessage()
        + "); allow more than these "
        + given
        + " MiB with GRISTWAY_JAVA_OPTS=-Xmx"
        + 4 * given
        + "m";
  }

  /** How the JVM tells that bytes of a mapped file are not there any more. */
  private static boolean isFaultOfMappedFile(InternalError error) {
    return String.valueOf(error.getMessage()).contains("unsafe memory access");
  }

  private String bugReport(Throwable thrown) {
    return "a bug in gristway: " + thrown + "; please report it with " + log(thrown);
  }

  private String log(Throwable thrown) {
    try {
      Path log = Files.createTempFile("gristway-", ".log");
      try (PrintWriter writer =
          new PrintWriter(Files.newBufferedWriter(log, StandardCharsets.UTF_8))) {
        writer.println(Version.text());
        writer.println(System.getProperty("os.name") + " " + System.getProperty("os.version"));
        writer.println("arguments: " + Arrays.toString(args));
        thrown.printStackTrace(writer);
      }
      return "the log " + log;
    } catch (IOException failed) {
      return "what '--debug' shows (no log could be written: " + Failure.reason(failed) + ")";
    }
  }
}
