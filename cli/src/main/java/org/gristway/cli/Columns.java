package org.gristway.cli;

import java.io.IOException;
import java.util.List;
import java.util.function.IntFunction;

/** Rows of a table for people: the first column at the left, numbers at the right of theirs. */
final class Columns {

  private Columns() {}

  /**
   * Prints the rows; the first has the headings.
   *
   * @param otherwise what follows the name in a row that has nothing else
   */
  static void print(List<List<String>> rows, IntFunction<String> otherwise, Console console)
      throws IOException {
    int[] widths = new int[rows.getFirst().size()];
    for (List<String> row : rows) {
      for (int i = 0; i < row.size(); i++) {
        widths[i] = Math.max(widths[i], row.get(i).length());
      }
    }
    for (int r = 0; r < rows.size(); r++) {
      List<String> row = rows.get(r);
      StringBuilder line = new StringBuilder(pad(row.getFirst(), -widths[0]));
      for (int i = 1; i < row.size(); i++) {
        line.append("  ").append(pad(row.get(i), widths[i]));
      }
      if (row.size() == 1) {
        line.append("  ").append(otherwise.apply(r));
      }
      console.print(line.toString());
    }
  }

  private static String pad(String text, int width) {
    return String.format("%" + width + "s", text);
  }
}
