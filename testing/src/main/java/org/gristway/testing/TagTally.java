package org.gristway.testing;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * Counts tests by tag, as rows of the table that {@code ./build} prints.
 *
 * <p>Every test has exactly one of the four tags, because the table tells what a machine could not
 * check: a test outside the table could be skipped everywhere without anyone seeing it.
 */
final class TagTally {
  static final List<String> TAGS = List.of("java", "python", "torch", "system");

  /** The row name under which {@code ./build} finds tests that have no tag, or several. */
  static final String ERROR = "error";

  private final Map<String, Row> rows = new LinkedHashMap<>();
  private final Set<String> errors = new TreeSet<>();

  /** Counts a test that was executed, whether or not it failed. */
  void ran(String test, Set<String> tags, boolean failed) {
    Row row = row(test, tags);
    row.ran++;
    if (failed) {
      row.failed++;
    }
  }

  /** Counts a test that was not executed, or that gave up for want of something. */
  void skipped(String test, Set<String> tags, String reason) {
    Row row = row(test, tags);
    row.skipped++;
    row.reasons.add(oneField(reason));
  }

  /** The lines of the file: tag, ran, failed, skipped and reasons, separated by tabs. */
  List<String> lines() {
    List<String> lines = new ArrayList<>();
    rows.forEach(
        (tag, row) ->
            lines.add(
                String.join(
                    "\t",
                    tag,
                    Integer.toString(row.ran),
                    Integer.toString(row.failed),
                    Integer.toString(row.skipped),
                    String.join("; ", row.reasons))));
    for (String error : errors) {
      lines.add(String.join("\t", ERROR, "0", "0", "0", error));
    }
    return lines;
  }

  private Row row(String test, Set<String> tags) {
    List<String> known = TAGS.stream().filter(tags::contains).toList();
    if (known.size() == 1) {
      return rows.computeIfAbsent(known.getFirst(), tag -> new Row());
    }
    String found = known.isEmpty() ? "none" : String.join(" and ", known);
    errors.add(oneField(test + " needs exactly one tag of " + TAGS + ", has " + found));
    // Counted nowhere: the error alone fails the build.
    return new Row();
  }

  /** Tabs and line ends would break the file's format. */
  private static String oneField(String text) {
    return text.strip().replaceAll("\\s+", " ");
  }

  private static final class Row {
    private int ran;
    private int failed;
    private int skipped;
    private final Set<String> reasons = new TreeSet<>();
  }
}
