package org.gristway.cli;

import picocli.CommandLine.Option;

/** What every command takes. */
final class Shared {

  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      description = "Show this help.")
  boolean help;

  /** {@link Outcome} looks for it itself: it holds for calls that cannot be parsed, too. */
  @Option(names = "--debug", hidden = true)
  boolean debug;
}
