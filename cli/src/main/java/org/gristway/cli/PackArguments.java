package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gristway.Progress;
import org.gristway.pack.Labels;
import org.gristway.pack.Notices;
import org.gristway.pack.PackOptions;
import org.gristway.pack.PackReport;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** What {@code pack} and {@code append} take alike. */
final class PackArguments {

  @SuppressWarnings("NullAway.Init")
  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Parameters(
      paramLabel = "SRC... DATASET",
      hideParamSyntax = true,
      description =
          "Folders, tar or zip files to pack, and last the dataset's folder. Files are labelled by"
              + " their first subfolder, samples in tar files by the number in their 'cls' part.")
  private List<Path> paths = new ArrayList<>();

  @Option(
      names = "--chunk-size",
      paramLabel = "SIZE",
      converter = ByteSize.class,
      description = "How large a chunk grows, from 64KiB to 1GiB (default: 64MiB).")
  private long chunkSize = PackOptions.DEFAULT_CHUNK_SIZE;

  @Option(
      names = "--seed",
      paramLabel = "NUMBER",
      description = "Decides the random order of samples in the chunks (default: 0).")
  private long seed;

  @Option(names = "--keep-order", description = "Keep the order of the sources instead.")
  private boolean keepOrder;

  @Option(
      names = "--parts",
      paramLabel = "stem",
      description =
          "With 'stem', files that share their path up to the name's first dot are the parts of one"
              + " sample, as they always are in tar files.")
  private @Nullable String parts;

  @Option(
      names = "--labels",
      paramLabel = "WHAT",
      description =
          "With 'folders', the first folder is the label in tar files too; with 'none', samples get"
              + " no labels. Either way a 'cls' part is a part like any other.")
  private @Nullable String labels;

  @Option(
      names = "--classes-of",
      paramLabel = "DATASET",
      description =
          "Give each class the number that it has in this dataset, which the model was trained"
              + " with, say. A folder that is no class there is an error.")
  private @Nullable Path classesOf;

  @Option(
      names = "--skip-unreadable",
      description = "Leave out what cannot be read, instead of giving up.")
  private boolean skipUnreadable;

  /** The call's options, or a complaint about it. */
  PackOptions options() {
    if (paths.size() < 2) {
      throw new ParameterException(
          spec.commandLine(),
          paths.isEmpty()
              ? "no source and no dataset given"
              : "only '" + paths.getFirst() + "' given, but it takes a source and a dataset");
    }
    if (parts != null && !parts.equals("stem")) {
      throw new ParameterException(
          spec.commandLine(), "--parts takes nothing but 'stem', not '" + parts + "'");
    }
    Labels from =
        switch (labels) {
          case null -> Labels.USUAL;
          case "folders" -> Labels.FOLDERS;
          case "none" -> Labels.NONE;
          default ->
              throw new ParameterException(
                  spec.commandLine(), "--labels takes 'folders' or 'none', not '" + labels + "'");
        };
    return PackOptions.DEFAULT
        .withChunkSize(chunkSize)
        .withSeed(seed)
        .withKeepOrder(keepOrder)
        .withStemParts(parts != null)
        .withLabels(from)
        .withClassesOf(classesOf)
        .withSkipUnreadable(skipUnreadable);
  }

  /** Packs or appends, and says what came of it. */
  int run(Console console, PackOptions options, Work work, String verb, String preposition)
      throws IOException {
    List<Path> sources = List.copyOf(paths.subList(0, paths.size() - 1));
    Path dataset = paths.getLast();
    LeftOut leftOut = new LeftOut(console);
    PackReport report;
    try {
      report = work.run(sources, dataset, options, console.progress(), leftOut);
    } finally {
      leftOut.end();
    }
    console.print(
        String.format(
            "%s %s, %s, %s %s: %s (version %d); %s",
            verb,
            Text.count(report.samples(), "sample"),
            Text.bytes(report.bytes()),
            preposition,
            Text.count(report.chunks(), "chunk"),
            Text.oneLine(dataset.toString()),
            report.version(),
            labels(report)));
    return CliCommand.DONE;
  }

  private static String labels(PackReport report) {
    if (report.labelled() == 0) {
      return "no labels";
    }
    String samples =
        report.labelled() == report.samples()
            ? "all samples have labels"
            : Text.number(report.labelled()) + " of the samples have labels";
    return report.classes() < 0 ? samples : samples + ", of " + Text.classes(report.classes());
  }

  /** One of the two things that can be done with these arguments. */
  interface Work {
    PackReport run(
        List<Path> sources, Path dataset, PackOptions options, Progress progress, Notices notices);
  }
}
