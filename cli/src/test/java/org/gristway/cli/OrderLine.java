package org.gristway.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** A line of what {@code --order} writes. */
record OrderLine(long epoch, long step, int rank, String requested, String delivered) {

  static List<OrderLine> read(Path file) {
    try {
      return parse(Files.readString(file));
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  static List<OrderLine> parse(String text) {
    return text.lines().map(OrderLine::parseLine).toList();
  }

  private static OrderLine parseLine(String line) {
    String[] fields = line.split("\t", -1);
    if (fields.length != 5) {
      throw new AssertionError("not five fields: " + line);
    }
    return new OrderLine(
        Long.parseLong(fields[0]),
        Long.parseLong(fields[1]),
        Integer.parseInt(fields[2]),
        fields[3],
        fields[4]);
  }

  /** The lines of an epoch. */
  static List<OrderLine> of(long epoch, List<OrderLine> lines) {
    return lines.stream().filter(line -> line.epoch == epoch).toList();
  }

  /** What lines deliver. */
  static List<String> keys(List<OrderLine> lines) {
    return lines.stream().map(OrderLine::delivered).toList();
  }
}
