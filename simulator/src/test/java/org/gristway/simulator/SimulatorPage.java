package org.gristway.simulator;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** What docs/simulator.md says, so that tests notice when that is no longer so. */
final class SimulatorPage {

  private static final Path PAGE = Path.of("..", "docs", "simulator.md");
  private static final String THESIS = "## Against the thesis";

  private SimulatorPage() {}

  /** The cells behind one, in the only row of the tables against the thesis that has it. */
  static List<String> cells(String cell) {
    try {
      String page = Files.readString(PAGE);
      List<List<String>> rows =
          page.substring(page.indexOf(THESIS))
              .lines()
              .takeWhile(line -> line.equals(THESIS) || !line.startsWith("## "))
              .map(line -> Arrays.stream(line.split("\\|")).map(String::strip).toList())
              .filter(cells -> cells.contains(cell))
              .toList();
      if (rows.size() != 1) {
        throw new AssertionError(rows.size() + " rows of " + PAGE + " have " + cell);
      }
      List<String> row = rows.getFirst();
      return row.subList(row.indexOf(cell) + 1, row.size());
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** Seconds as they stand there. */
  static String seconds(double seconds) {
    return String.format(Locale.ROOT, seconds < 100 ? "%.2f" : "%,.0f", seconds);
  }
}
