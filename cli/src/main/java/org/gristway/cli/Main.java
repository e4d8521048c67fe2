package org.gristway.cli;

import java.io.IOException;

/**
 * The gristway command's entry point. It stays this small so that {@code --version}, which scripts
 * call to see whether Gristway is there, loads next to nothing.
 */
public final class Main {

  private Main() {}

  /** Runs the command and exits with its status. */
  public static void main(String[] args) {
    Console console = Console.standard();
    if (!isVersionCall(args)) {
      Outcome outcome = new Outcome(console, args);
      // A thread that dies with nobody waiting for it is a bug like any other.
      Thread.setDefaultUncaughtExceptionHandler((_, thrown) -> exit(outcome.of(thrown)));
    }
    exit(run(console, args));
  }

  /** Runs the command and returns its status; whatever is thrown is told. */
  static int run(Console console, String[] args) {
    try {
      int status = isVersionCall(args) ? version(console) : RootCommand.run(console, args);
      console.flush();
      return status;
    } catch (Throwable thrown) {
      return new Outcome(console, args).of(thrown);
    }
  }

  private static boolean isVersionCall(String[] args) {
    return args.length == 1 && (args[0].equals("--version") || args[0].equals("-V"));
  }

  private static int version(Console console) throws IOException {
    console.print(Version.text());
    return 0;
  }

  /**
   * During a shutdown (Ctrl-C) the status is decided already, and another exit would wait for the
   * shutdown, which may be waiting for this thread.
   */
  private static void exit(int status) {
    if (!Outcome.isShuttingDown()) {
      System.exit(status);
    }
  }
}
