package org.gristway.cli;

import java.io.IOException;

/** What can be asked for on the command line. */
interface CliCommand {

  /** The exit code of a command that is done. */
  int DONE = 0;

  /** The exit code of a command that has found damage, and has said so. */
  int DAMAGED = 1;

  /**
   * Does it, and returns the exit code.
   *
   * @throws IOException if standard output fails; other failures are {@link org.gristway.Failure}s
   */
  int run() throws IOException;
}
