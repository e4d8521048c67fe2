package org.gristway.cli;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.gristway.chunk.Shape;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.DatasetFolder;
import org.gristway.dataset.Portion;
import org.gristway.snapshot.LabelTally;
import org.gristway.snapshot.Snapshot;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Says what a dataset holds. */
@Command(
    name = "info",
    description = "Says what a dataset holds: samples, sizes, parts and labels.",
    footer = {"", "Example: gristway info flowers.gw"})
final class InfoCommand implements CliCommand {

  private final Console console;

  @Mixin private DatasetArgument dataset = new DatasetArgument();

  @Option(names = "--json", description = "Print it as one JSON object.")
  private boolean asJson;

  InfoCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    try (Dataset opened = Dataset.open(dataset.path())) {
      Snapshot snapshot = opened.snapshot();
      Summary summary = Summary.of(snapshot, console.progress());
      List<Integer> versions = List.copyOf(DatasetFolder.at(dataset.path()).versions());
      if (asJson) {
        InfoJson.write(opened, versions, summary, console.out());
      } else {
        print(snapshot, versions, opened.portion(), summary);
      }
    }
    return DONE;
  }

  private void print(
      Snapshot snapshot, List<Integer> versions, Optional<Portion> portion, Summary summary)
      throws IOException {
    long samples = snapshot.sampleCount();
    console.print(Text.oneLine(dataset.path().toString()));
    row("id", snapshot.datasetId().toString());
    row(
        "version",
        snapshot.version()
            + (versions.size() == 1 ? "" : " of " + String.join(", ", texts(versions))));
    row("samples", Text.number(samples));
    row("bytes", Text.number(snapshot.dataBytes()) + sizeBehind(snapshot.dataBytes()));
    row("chunks", Text.number(snapshot.chunkCount()));
    if (portion.isPresent()) {
      long here = portion.get().chunks(snapshot).count();
      row("here", Text.count(here, "chunk") + ", those of " + portion.get());
    }
    String heading = "parts";
    for (Summary.ShapeCount shape : summary.shapes()) {
      row(heading, names(shape.shape()) + ": " + Text.count(shape.samples(), "sample"));
      heading = "";
    }
    row("labels", labels(snapshot, summary));
    if (samples > 0) {
      row(
          "sample",
          String.format(
              "smallest %s, mean %s, largest %s",
              Text.bytes(summary.smallest()),
              Text.bytes((double) snapshot.dataBytes() / samples),
              Text.bytes(summary.largest())));
    }
    row("snapshot", snapshot.id() + ", " + snapshotSize(snapshot));
  }

  private void row(String name, String value) throws IOException {
    console.print(String.format("  %-9s %s", name, value));
  }

  private static List<String> texts(List<Integer> numbers) {
    return numbers.stream().map(String::valueOf).toList();
  }

  private static String sizeBehind(long bytes) {
    return bytes < 1024 ? "" : " (" + Text.bytes(bytes) + ")";
  }

  private static String snapshotSize(Snapshot snapshot) {
    String size = Text.bytes(snapshot.fileBytes());
    return snapshot.sampleCount() == 0
        ? size
        : String.format(
            Locale.ROOT,
            "%s, %.1f bytes per sample",
            size,
            (double) snapshot.fileBytes() / snapshot.sampleCount());
  }

  private static String names(Shape shape) {
    return shape.equals(Shape.PLAIN)
        ? "plain files"
        : Text.escape(String.join(", ", shape.parts()));
  }

  private static String labels(Snapshot snapshot, Summary summary) {
    LabelTally tally = summary.labels();
    if (tally.labelled() == 0) {
      return "none";
    }
    long without = snapshot.sampleCount() - tally.labelled();
    String none = without == 0 ? "" : "; " + Text.count(without, "sample") + " without";
    String numbers = "numbers from " + tally.lowest() + " to " + tally.highest();
    int count = tally.classes();
    if (!snapshot.hasNamedLabels()) {
      return (count < 0 ? "" : Text.classes(count) + ", ") + numbers + none;
    }
    List<String> shown = new ArrayList<>();
    for (Summary.ClassCount named : summary.classes()) {
      shown.add(Text.escape(named.name()) + " (" + Text.number(named.samples()) + ")");
    }
    if (count > shown.size()) {
      shown.add("…");
    }
    if (count < 0) {
      count = snapshot.namedLabelCount();
    }
    boolean hasGaps = count < snapshot.namedLabelCount();
    return Text.classes(count)
        + (hasGaps ? ", " + numbers + ": " : ": ")
        + String.join(", ", shown)
        + none;
  }
}
