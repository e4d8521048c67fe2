package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.Map;
import org.gristway.Failure;
import org.gristway.chunk.Shape;
import org.gristway.dataset.Dataset;
import org.gristway.snapshot.Snapshot;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/**
 * Lists keys. There may be a billion of them, so they go from the snapshot to the output as bytes,
 * and nothing is made of them on the way.
 */
@Command(
    name = "ls",
    description = {
      "Lists the keys of a dataset, one a line, in key order.",
      "Tab, newline, carriage return and backslash are written as \\t, \\n, \\r and \\\\,",
      "other control characters as \\x and two digits."
    },
    footer = {"", "Example: gristway ls flowers.gw roses/"})
final class LsCommand implements CliCommand {

  private static final byte[] NONE = {'-'};

  private final Console console;
  private final Map<Shape, byte[]> partNames = new IdentityHashMap<>();

  @Mixin private DatasetArgument dataset = new DatasetArgument();

  @Parameters(
      index = "1",
      arity = "0..1",
      paramLabel = "PREFIX",
      description = "List only the keys that begin with this.")
  private String prefix = "";

  @Option(
      names = {"-l", "--long"},
      description =
          "Four columns with tabs between them: key, label (-1 for none), bytes and part names ('-'"
              + " for the one part of a plain file).")
  private boolean inColumns;

  LsCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    byte[] start = prefix.getBytes(StandardCharsets.UTF_8);
    OutputStream out = console.out();
    try (Dataset opened = Dataset.open(dataset.path())) {
      Snapshot snapshot = opened.snapshot();
      long first = snapshot.rankOf(start);
      long rank = first;
      for (; rank < snapshot.sampleCount(); rank++) {
        long sample = snapshot.inKeyOrder(rank);
        byte[] key = snapshot.keyBytes(sample);
        if (!startsWith(key, start)) {
          break;
        }
        Text.writeEscaped(key, out);
        if (inColumns) {
          writeColumns(snapshot, sample, out);
        }
        out.write('\n');
      }
      if (rank == first && !prefix.isEmpty()) {
        throw Failure.wrongCall(
            "%s has no key that begins with '%s'; list all with 'gristway ls %s'",
            dataset.path(), prefix, dataset.inShell());
      }
    }
    return DONE;
  }

  private static boolean startsWith(byte[] key, byte[] start) {
    return key.length >= start.length
        && Arrays.equals(key, 0, start.length, start, 0, start.length);
  }

  private void writeColumns(Snapshot snapshot, long sample, OutputStream out) throws IOException {
    int label = snapshot.label(sample);
    out.write('\t');
    out.write(Integer.toString(label).getBytes(StandardCharsets.US_ASCII));
    out.write('\t');
    out.write(Long.toString(snapshot.length(sample)).getBytes(StandardCharsets.US_ASCII));
    out.write('\t');
    out.write(partNames.computeIfAbsent(snapshot.shape(sample), LsCommand::partNames));
  }

  private static byte[] partNames(Shape shape) {
    return shape.equals(Shape.PLAIN)
        ? NONE
        : Text.escape(String.join(",", shape.parts())).getBytes(StandardCharsets.UTF_8);
  }
}
