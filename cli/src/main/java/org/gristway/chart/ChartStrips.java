package org.gristway.chart;

import java.util.List;

/**
 * Strips of thin columns, each divided from top to bottom by shares that add up to one: how a mix
 * changes from left to right.
 */
public final class ChartStrips {

  /**
   * A strip.
   *
   * @param shares of each column, by part
   */
  public record Strip(String name, double[][] shares) {}

  /** What the columns are divided into. */
  public record Part(String name, ChartColor color) {}

  private static final int WIDTH = 480;
  private static final int STRIP = 52;
  private static final int ROW = 24 + STRIP;
  private static final int TOP = 44;
  private static final int BELOW = 24;
  private static final double LEGEND_MARK = 18;
  private static final double LEGEND_GAP = 12;

  private ChartStrips() {}

  /**
   * @param label what is divided
   * @param first what the first column is called, and {@code last} the last
   */
  public static String svg(
      String label, String first, String last, List<Part> parts, List<Strip> strips) {
    int height = TOP + ROW * strips.size() + BELOW;
    ChartSvg svg = new ChartSvg(WIDTH, height, label);
    svg.text(0, 14, ChartSvg.Anchor.START, "label", label);
    double at = 0;
    for (Part part : parts) {
      svg.box(at, 24, 12, 12, part.color());
      svg.text(at + LEGEND_MARK, 34, ChartSvg.Anchor.START, "key", part.name());
      at += LEGEND_MARK + ChartSvg.width(part.name()) + LEGEND_GAP;
    }
    double top = TOP;
    for (Strip strip : strips) {
      svg.text(0, top + 17, ChartSvg.Anchor.START, "key", strip.name());
      for (int part = 0; part < parts.size(); part++) {
        svg.path(cells(strip, part, top + 24), parts.get(part).color(), "area", "");
      }
      top += ROW;
    }
    svg.text(0, top + 17, ChartSvg.Anchor.START, "number", first);
    svg.text(WIDTH, top + 17, ChartSvg.Anchor.END, "number", last);
    return svg.end();
  }

  private static StringBuilder cells(Strip strip, int part, double top) {
    StringBuilder path = new StringBuilder();
    int columns = strip.shares().length;
    for (int i = 0; i < columns; i++) {
      double above = 0;
      for (int before = 0; before < part; before++) {
        above += strip.shares()[i][before];
      }
      double share = strip.shares()[i][part];
      if (share > 0) {
        String left = ChartSvg.number((double) WIDTH * i / columns);
        String right = ChartSvg.number((double) WIDTH * (i + 1) / columns);
        path.append('M').append(left).append(' ').append(ChartSvg.number(top + STRIP * above));
        path.append('H').append(right);
        path.append('V').append(ChartSvg.number(top + STRIP * (above + share)));
        path.append('H').append(left).append('Z');
      }
    }
    return path;
  }
}
