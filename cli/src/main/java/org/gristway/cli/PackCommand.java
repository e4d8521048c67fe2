package org.gristway.cli;

import java.io.IOException;
import org.gristway.pack.Packer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Makes a dataset. */
@Command(
    name = "pack",
    sortOptions = false,
    customSynopsis = "gristway pack SRC... DATASET [OPTIONS]",
    description = "Packs folders, tar and zip files into a new dataset.",
    footer = {"", "Example: gristway pack photos/ flowers.gw"})
final class PackCommand implements CliCommand {

  private final Console console;

  @Mixin private PackArguments arguments = new PackArguments();

  @Option(names = "--force", description = "Replace the dataset that is there.")
  private boolean force;

  PackCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    return arguments.run(
        console, arguments.options().withForce(force), Packer::pack, "packed", "into");
  }
}
