package org.gristway.chart;

/**
 * A picture as a file of its own, to be shown by a page that is not ours: it brings the style sheet
 * along that {@link ReportPage} has for its pictures, and a background.
 */
public final class PictureFile {

  private PictureFile() {}

  /**
   * The text of the file.
   *
   * @param svg as {@link Chart#svg} and its like give it
   */
  public static String of(String svg) {
    int content = svg.indexOf('>') + 1;
    return svg.substring(0, content)
            .replaceFirst("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"")
        + "\n<style>\n"
        + ChartStyle.COLORS
        + ChartStyle.RULES
        + "</style>\n"
        + "<rect width=\"100%\" height=\"100%\" fill=\"var(--page)\"/>"
        + svg.substring(content);
  }
}
