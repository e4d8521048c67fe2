package org.gristway.cli;

import java.nio.file.Path;
import picocli.CommandLine.Parameters;

/** The dataset that a command is about. */
final class DatasetArgument {

  @SuppressWarnings("NullAway.Init")
  @Parameters(index = "0", paramLabel = "DATASET", description = "The dataset's folder.")
  private Path path;

  Path path() {
    return path;
  }

  /** The dataset in a command that a message asks the user to enter. */
  String inShell() {
    return Text.shellQuote(path.toString());
  }
}
