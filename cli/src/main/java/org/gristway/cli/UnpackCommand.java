package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Path;
import org.gristway.dataset.Unpacker;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** Writes the files again. */
@Command(
    name = "unpack",
    description = "Writes the samples of a dataset back to files, as they were before packing.",
    footer = {"", "Example: gristway unpack flowers.gw photos/"})
final class UnpackCommand implements CliCommand {

  private final Console console;

  @Mixin private DatasetArgument dataset = new DatasetArgument();

  @SuppressWarnings("NullAway.Init")
  @Parameters(index = "1", paramLabel = "DEST", description = "A folder, new or empty.")
  private Path target;

  UnpackCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    long samples = Unpacker.unpack(dataset.path(), target, console.progress());
    console.print(
        "unpacked " + Text.count(samples, "sample") + " into " + Text.oneLine(target.toString()));
    return DONE;
  }
}
