package org.gristway.cli;

import java.io.IOException;
import org.gristway.pack.Packer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Adds a version to a dataset. */
@Command(
    name = "append",
    sortOptions = false,
    customSynopsis = "gristway append SRC... DATASET [OPTIONS]",
    description = {
      "Adds the samples of folders, tar and zip files to a dataset, as its next version.",
      "The chunks that are there stay as they are."
    },
    footer = {"", "Example: gristway append more-photos/ flowers.gw"})
final class AppendCommand implements CliCommand {

  private final Console console;

  @Mixin private PackArguments arguments = new PackArguments();

  AppendCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    return arguments.run(console, arguments.options(), Packer::append, "appended", "in");
  }
}
