package org.gristway.cli;

import java.io.IOException;
import org.gristway.dataset.Verifier;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Looks for damage. */
@Command(
    name = "verify",
    description = {
      "Reads every byte of a dataset and holds it against its checksums.",
      "Names all damage that there is, a line each, and then exits with 1."
    },
    footer = {"", "Example: gristway verify flowers.gw"})
final class VerifyCommand implements CliCommand {

  private final Console console;

  @Mixin private DatasetArgument dataset = new DatasetArgument();

  VerifyCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    Verifier.Report report = Verifier.verify(dataset.path(), console.progress());
    console.endProgress();
    if (report.faults().isEmpty()) {
      console.print(
          String.format(
              "ok: %s, %s in %s, every checksum holds",
              Text.count(report.samples(), "sample"),
              Text.bytes(report.bytes()),
              Text.count(report.chunks(), "chunk")));
      return DONE;
    }
    report.faults().forEach(console::complain);
    console.complain(Text.count(report.faults().size(), "fault") + " in " + dataset.path());
    return DAMAGED;
  }
}
