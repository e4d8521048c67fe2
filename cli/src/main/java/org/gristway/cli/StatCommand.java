package org.gristway.cli;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.core.JsonGenerator;

/** Looks at the counters of processes that read. */
@Command(
    name = "stat",
    description = {
      "Shows what processes that read datasets have counted up to now, without disturbing them.",
      "One line a counter: its name and its value."
    },
    footer = {"", "Example: gristway stat"})
final class StatCommand implements CliCommand {

  private final Console console;

  @Parameters(
      arity = "0..1",
      paramLabel = "PROCESS",
      description = "The id of a process; without it, all processes of yours that read.")
  private @Nullable Long process;

  @Option(names = "--json", description = "Print it as one JSON object.")
  private boolean asJson;

  StatCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    List<ReaderProcess> readers = process == null ? ReaderProcess.all() : readersIn(process);
    if (asJson) {
      JsonOutput.write(console.out(), json -> write(readers, json));
    } else if (readers.isEmpty()) {
      console.complain("no process of yours reads a dataset");
    } else {
      print(readers);
    }
    return DONE;
  }

  private static List<ReaderProcess> readersIn(long process) {
    List<ReaderProcess> readers = ReaderProcess.in(process);
    if (readers.isEmpty()) {
      throw ProcessHandle.of(process).isPresent()
          ? Failure.wrongCall(
              "process %d has no counters: it reads no dataset, or is another user's; 'gristway"
                  + " stat' shows those that do",
              process)
          : Failure.wrongCall(
              "there is no process %d; 'gristway stat' shows those that read", process);
    }
    return readers;
  }

  private void print(List<ReaderProcess> readers) throws IOException {
    String between = null;
    for (ReaderProcess reader : readers) {
      if (between != null) {
        console.print(between);
      }
      between = "";
      console.print("process " + reader.process());
      console.print("command " + Text.escape(reader.command()));
      for (Map.Entry<String, Long> counter : reader.counters().entrySet()) {
        console.print(counter.getKey() + " " + counter.getValue());
      }
    }
  }

  private static void write(List<ReaderProcess> readers, JsonGenerator json) {
    json.writeArrayPropertyStart("readers");
    for (ReaderProcess reader : readers) {
      json.writeStartObject();
      json.writeNumberProperty("process", reader.process());
      json.writeStringProperty("command", reader.command());
      json.writeObjectPropertyStart("counters");
      reader.counters().forEach(json::writeNumberProperty);
      json.writeEndObject();
      json.writeEndObject();
    }
    json.writeEndArray();
  }
}
