package org.gristway.cli;

import java.io.IOException;
import java.util.List;
import org.gristway.chunk.ChunkFormat;
import org.gristway.dataset.Rebuilder;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Makes snapshots anew. */
@Command(
    name = "rebuild",
    description = {
      "Makes a dataset's snapshots anew from its chunks, byte for byte as they were.",
      "Those that are right already are left alone."
    },
    footer = {"", "Example: gristway rebuild flowers.gw"})
final class RebuildCommand implements CliCommand {

  private final Console console;

  @Mixin private DatasetArgument dataset = new DatasetArgument();

  RebuildCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    Rebuilder.Report report = Rebuilder.rebuild(dataset.path(), console.progress());
    console.endProgress();
    for (int version : report.unchanged()) {
      console.print("version " + version + ": the snapshot was right already");
    }
    for (int version : report.written()) {
      console.print("version " + version + ": snapshot written");
    }
    if (report.loose().isEmpty()) {
      return DONE;
    }
    console.flush();
    console.complain(describe(report.loose()));
    return DAMAGED;
  }

  private String describe(List<Integer> loose) {
    String first = ChunkFormat.fileName(loose.getFirst());
    return loose.size() == 1
        ? String.format(
            "%s in %s is of a version that is not complete: an append was cut short (delete it and"
                + " append again), or chunks are lost (bring them back from a copy)",
            first, dataset.path())
        : String.format(
            "%s to %s in %s are of a version that is not complete: an append was cut short (delete"
                + " them and append again), or chunks are lost (bring them back from a copy)",
            first, ChunkFormat.fileName(loose.getLast()), dataset.path());
  }
}
