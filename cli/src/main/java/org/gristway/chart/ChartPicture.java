package org.gristway.chart;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.Failure;

/** A chart in a file of its own, for a document that is not one of our pages. */
public final class ChartPicture {

  private static final String BEGIN = "<svg ";

  private ChartPicture() {}

  /**
   * Writes a picture, in place of a file that is there.
   *
   * @param svg as charts draw it
   */
  public static void write(Path file, String svg) {
    int inside = svg.indexOf('>') + 1;
    String whole =
        BEGIN
            + "xmlns=\"http://www.w3.org/2000/svg\" "
            + svg.substring(BEGIN.length(), inside)
            + "\n<style>\n"
            + ChartStyle.css()
            + "svg{background:var(--page)}\n</style>"
            + svg.substring(inside);
    try {
      Files.writeString(file, whole);
    } catch (IOException failed) {
      throw Failure.io("write " + file, failed);
    }
  }
}
