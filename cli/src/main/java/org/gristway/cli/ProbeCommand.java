package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.Failure;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Measures a machine's storage. */
@Command(
    name = "probe",
    description = {
      "Measures what the storage of a folder gives for reads of many sizes, several at once, past the"
          + " page cache and through it, and for small files; and how fast memory is copied. It takes"
          + " less than a minute and at most a GiB of space, which it gives back.",
      "Nothing of it enters a plan: it is advice, and numbers for a scenario of 'simulate'."
    },
    footer = {"", "Example: gristway probe /data"})
final class ProbeCommand implements CliCommand {

  private final Console console;
  private final double patience;

  @SuppressWarnings("NullAway.Init")
  @Parameters(index = "0", paramLabel = "DIR", description = "A folder on the storage.")
  private Path folder;

  @Option(names = "--json", description = "Print the result as one JSON object.")
  private boolean asJson;

  ProbeCommand(Console console) {
    this(console, 1);
  }

  /**
   * @param patience that of the {@link Probe}
   */
  ProbeCommand(Console console, double patience) {
    this.console = console;
    this.patience = patience;
  }

  @Override
  public int run() throws IOException {
    if (!Files.isDirectory(folder)) {
      throw Failure.wrongCall("%s is not a folder", folder);
    }
    ProbeResult result;
    try (ProbeFolder probe = ProbeFolder.in(folder)) {
      result = new Probe(probe, console.progress(), patience).run();
    }
    console.endProgress();
    if (asJson) {
      ProbeOutput.writeJson(folder, result, console.out());
    } else {
      ProbeOutput.print(folder, result, console);
    }
    return DONE;
  }
}
