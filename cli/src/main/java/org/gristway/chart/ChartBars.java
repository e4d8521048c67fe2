package org.gristway.chart;

import java.util.List;

/** Named bars, one below the other, each with its value behind it. */
public final class ChartBars {

  /**
   * A bar.
   *
   * @param value at least 0
   * @param text the value with its unit
   */
  public record Bar(String name, ChartColor color, double value, String text) {}

  private static final int WIDTH = 480;
  private static final int ROW = 48;
  private static final int TOP = 24;
  private static final double THICKNESS = 18;
  private static final double GAP = 8;

  private ChartBars() {}

  /**
   * @param label what is measured
   * @param longest the value of a bar that takes all the room
   */
  public static String svg(String label, double longest, List<Bar> bars) {
    StringBuilder description = new StringBuilder(label).append(':');
    double room = WIDTH;
    for (Bar bar : bars) {
      description.append(' ').append(bar.name()).append(' ').append(bar.text()).append(';');
      room = Math.min(room, WIDTH - GAP - ChartSvg.width(bar.text()));
    }
    ChartSvg svg = new ChartSvg(WIDTH, TOP + ROW * bars.size(), description.toString());
    svg.text(0, 14, ChartSvg.Anchor.START, "label", label);
    double at = TOP;
    for (Bar bar : bars) {
      double length = Math.max(1, room * Math.clamp(bar.value() / longest, 0, 1));
      svg.text(0, at + 16, ChartSvg.Anchor.START, "key", bar.name());
      svg.box(0, at + 22, room, THICKNESS, ChartColor.TRACK);
      svg.box(0, at + 22, length, THICKNESS, bar.color());
      svg.text(room + GAP, at + 36, ChartSvg.Anchor.START, "key", bar.text());
      at += ROW;
    }
    return svg.end();
  }
}
