package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gristway.pack.Placer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Deals chunks to nodes. */
@Command(
    name = "place",
    sortOptions = false,
    customSynopsis = "gristway place DATASET --nodes COUNT DEST...",
    description = {
      "Deals the chunks of a dataset to folders, one for each node of a training job, balanced by"
          + " bytes: for nodes that each have a disk of their own.",
      "Nodes that read what they have and exchange all of it ('gristway plan --exchange 1 --homes"
          + " placed') deliver the whole dataset. A folder that is there already is left as it is."
    },
    footer = {
      "",
      "Example: gristway place flowers.gw --nodes 2 /mnt/a/flowers.gw /mnt/b/flowers.gw"
    })
final class PlaceCommand implements CliCommand {

  private final Console console;

  @SuppressWarnings("NullAway.Init")
  @Spec
  private CommandSpec spec;

  @Mixin private DatasetArgument dataset = new DatasetArgument();

  @Option(
      names = "--nodes",
      paramLabel = "COUNT",
      required = true,
      description = "How many nodes there are, 2 or more.")
  private int nodes;

  @Parameters(
      index = "1..*",
      arity = "1..*",
      paramLabel = "DEST",
      description = "The folder of each node, from node 0 on, new or empty.")
  private List<Path> targets = new ArrayList<>();

  PlaceCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    if (targets.size() != nodes) {
      throw new ParameterException(
          spec.commandLine(),
          Text.count(nodes, "node")
              + " cannot have "
              + Text.count(targets.size(), "folder")
              + ": name one for each");
    }
    List<Placer.Placed> placed = Placer.place(dataset.path(), targets, console.progress());
    console.endProgress();
    for (Placer.Placed each : placed) {
      console.print(
          String.format(
              "%s: %s, %s, in %s%s",
              each.portion(),
              Text.count(each.chunks(), "chunk"),
              Text.bytes(each.bytes()),
              Text.oneLine(each.target().toString()),
              each.wasThere() ? " (there already)" : ""));
    }
    return DONE;
  }
}
