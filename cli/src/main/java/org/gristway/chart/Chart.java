package org.gristway.chart;

import java.util.ArrayList;
import java.util.List;

/**
 * A chart with two axes: lines, dots, columns and levels against each other. Whatever is outside
 * the axes is drawn at their rim.
 *
 * <pre>
 *   label of y
 *   legend
 *   |
 *   |   plot
 *   |__________
 *    label of x
 * </pre>
 */
public final class Chart {

  /** Where the plot is, in pixels. */
  record Plot(double left, double top, double right, double bottom) {}

  private record Entry(String name, ChartColor color, Mark mark, String dashes) {}

  private enum Mark {
    LINE,
    BOX
  }

  private static final double RIGHT_RIM = 14;
  private static final double LABEL_LINE = 20;
  private static final double LEGEND_LINE = 20;
  private static final double BELOW_PLOT = 42;
  private static final double LEGEND_MARK = 24;
  private static final double LEGEND_GAP = 14;

  private final int width;
  private final int height;
  private final String description;
  private final ChartAxis x;
  private final ChartAxis y;
  private final List<Entry> legend = new ArrayList<>();
  private final List<Painting> paintings = new ArrayList<>();
  private boolean withoutTicks;

  private interface Painting {
    void paint(Plot plot, ChartSvg svg);
  }

  /**
   * @param description what can be seen, for those who cannot
   */
  public Chart(int width, int height, String description, ChartAxis x, ChartAxis y) {
    this.width = width;
    this.height = height;
    this.description = description;
    this.x = x;
    this.y = y;
  }

  /** Leaves out the numbers of the y axis, for rows that have none. */
  public Chart withoutNumbersOfY() {
    withoutTicks = true;
    return this;
  }

  /**
   * A line through points; {@code dashes} such as "6 3", or empty for a whole one. A point that is
   * no number ends it, and the next begins another.
   */
  public Chart line(String name, ChartColor color, String dashes, double[] xs, double[] ys) {
    legend.add(new Entry(name, color, Mark.LINE, dashes));
    paintings.add(
        (plot, svg) -> {
          StringBuilder path = new StringBuilder();
          char move = 'M';
          for (int i = 0; i < xs.length; i++) {
            if (Double.isNaN(xs[i])) {
              move = 'M';
            } else {
              path.append(move).append(point(plot, xs[i], ys[i]));
              move = 'L';
            }
          }
          svg.path(path, color, "line", dashes);
        });
    return this;
  }

  /** A value of y that holds for all of x. */
  public Chart level(String name, ChartColor color, double value) {
    return line(name, color, "2 3", new double[] {x.low(), x.high()}, new double[] {value, value});
  }

  /** A dot for each point, without an entry in the legend. */
  public Chart dots(ChartColor color, double[] xs, double[] ys) {
    return dots(color, "dots", xs, ys);
  }

  private Chart dots(ChartColor color, String style, double[] xs, double[] ys) {
    paintings.add(
        (plot, svg) -> {
          StringBuilder path = new StringBuilder();
          for (int i = 0; i < xs.length; i++) {
            path.append('M').append(point(plot, xs[i], ys[i])).append("h0");
          }
          svg.path(path, color, style, "");
        });
    return this;
  }

  /** A large dot for each point. */
  public Chart dots(String name, ChartColor color, double[] xs, double[] ys) {
    legend.add(new Entry(name, color, Mark.BOX, ""));
    return dots(color, "dots large", xs, ys);
  }

  /** Columns that stand on the x axis, each around its x. */
  public Chart columns(
      String name, ChartColor color, double columnWidth, double[] xs, double[] ys) {
    legend.add(new Entry(name, color, Mark.BOX, ""));
    paintings.add(
        (plot, svg) -> {
          StringBuilder path = new StringBuilder();
          for (int i = 0; i < xs.length; i++) {
            double left = atX(plot, xs[i] - 0.45 * columnWidth);
            double right = atX(plot, xs[i] + 0.45 * columnWidth);
            path.append('M').append(ChartSvg.number(left)).append(' ');
            path.append(ChartSvg.number(plot.bottom()));
            path.append('V').append(ChartSvg.number(atY(plot, ys[i])));
            path.append('H').append(ChartSvg.number(right));
            path.append('V').append(ChartSvg.number(plot.bottom())).append('Z');
          }
          svg.path(path, color, "area", "");
        });
    return this;
  }

  private String point(Plot plot, double valueX, double valueY) {
    return ChartSvg.number(atX(plot, valueX)) + " " + ChartSvg.number(atY(plot, valueY));
  }

  private double atX(Plot plot, double value) {
    return plot.left() + x.part(value) * (plot.right() - plot.left());
  }

  private double atY(Plot plot, double value) {
    return plot.bottom() - y.part(value) * (plot.bottom() - plot.top());
  }

  /** Where the plot is: it leaves room for labels, numbers and the legend. */
  Plot plot() {
    double numbers = 6;
    if (!withoutTicks) {
      for (double tick : y.ticks()) {
        numbers = Math.max(numbers, ChartSvg.width(y.text(tick)) + 8);
      }
    }
    double top = 8 + LABEL_LINE + legendLines() * LEGEND_LINE;
    return new Plot(numbers, top, width - RIGHT_RIM, height - BELOW_PLOT);
  }

  private int legendLines() {
    int lines = 0;
    double at = width;
    for (Entry entry : legend) {
      double room = LEGEND_MARK + ChartSvg.width(entry.name()) + LEGEND_GAP;
      if (at + room > width) {
        lines++;
        at = 0;
      }
      at += room;
    }
    return lines;
  }

  /** The picture. */
  public String svg() {
    ChartSvg svg = new ChartSvg(width, height, description);
    Plot plot = plot();
    svg.text(0, 14, ChartSvg.Anchor.START, "label", y.label());
    drawLegend(svg);
    for (double tick : y.ticks()) {
      if (!withoutTicks) {
        double at = atY(plot, tick);
        svg.line(plot.left(), at, plot.right(), at, "grid");
        svg.text(plot.left() - 6, at + 4.5, ChartSvg.Anchor.END, "number", y.text(tick));
      }
    }
    for (double tick : x.ticks()) {
      double at = atX(plot, tick);
      svg.line(at, plot.bottom(), at, plot.bottom() + 4, "axis");
      String text = x.text(tick);
      double half = ChartSvg.width(text) / 2;
      svg.text(
          Math.clamp(at, half, width - half),
          plot.bottom() + 18,
          ChartSvg.Anchor.MIDDLE,
          "number",
          text);
    }
    svg.line(plot.left(), plot.bottom(), plot.right(), plot.bottom(), "axis");
    svg.text(
        (plot.left() + plot.right()) / 2,
        plot.bottom() + 36,
        ChartSvg.Anchor.MIDDLE,
        "label",
        x.label());
    for (Painting painting : paintings) {
      painting.paint(plot, svg);
    }
    return svg.end();
  }

  private void drawLegend(ChartSvg svg) {
    double at = 0;
    double line = 8 + LABEL_LINE + 10;
    for (Entry entry : legend) {
      double room = LEGEND_MARK + ChartSvg.width(entry.name()) + LEGEND_GAP;
      if (at > 0 && at + room > width) {
        at = 0;
        line += LEGEND_LINE;
      }
      switch (entry.mark()) {
        case BOX -> svg.box(at + 3, line - 10, 12, 12, entry.color());
        case LINE ->
            svg.path(
                "M" + ChartSvg.number(at) + " " + ChartSvg.number(line - 4) + "h18",
                entry.color(),
                "line",
                entry.dashes());
      }
      svg.text(at + LEGEND_MARK, line, ChartSvg.Anchor.START, "key", entry.name());
      at += room;
    }
  }
}
