package org.gristway.chart;

import java.util.ArrayList;
import java.util.List;

/** Named lines of one chart, each told apart from the others in the same way on every chart. */
public final class ChartLines {

  /** Told apart by colour first, and then by dashes. */
  private static final List<ChartColor> COLORS =
      List.of(
          ChartColor.BLUE,
          ChartColor.ORANGE,
          ChartColor.GREEN,
          ChartColor.PURPLE,
          ChartColor.YELLOW,
          ChartColor.GREY);

  private static final List<String> DASHES = List.of("", "7 3", "2 3");

  /** Axes of powers know no zero. */
  private static final double SMALL = 1e-6;

  private final List<String> names;
  private final List<List<double[]>> points = new ArrayList<>();
  private double smallestX = Double.MAX_VALUE;
  private double largestX = SMALL;
  private double smallestY = Double.MAX_VALUE;
  private double largestY = SMALL;

  /**
   * @param names of the lines that there may be; one without points is not drawn
   */
  public ChartLines(List<String> names) {
    this.names = List.copyOf(names);
    names.forEach(_ -> points.add(new ArrayList<>()));
  }

  /** Adds the next point of a line. */
  public void add(String name, double x, double y) {
    points.get(names.indexOf(name)).add(new double[] {x, y});
    smallestX = Math.min(smallestX, Math.max(SMALL, x));
    largestX = Math.max(largestX, x);
    smallestY = Math.min(smallestY, Math.max(SMALL, y));
    largestY = Math.max(largestY, y);
  }

  public boolean isEmpty() {
    return points.stream().allMatch(List::isEmpty);
  }

  /** An axis of powers that all points are on. */
  public ChartAxis powersOfX(String label, int base) {
    return ChartAxis.ofPowers(label, base, smallestX, largestX);
  }

  /** An axis of powers that all points are on. */
  public ChartAxis powersOfY(String label, int base) {
    return ChartAxis.ofPowers(label, base, smallestY, largestY);
  }

  /** An axis from zero that all points are on. */
  public ChartAxis upToX(String label) {
    return ChartAxis.upTo(label, largestX);
  }

  /** An axis from zero that all points are on. */
  public ChartAxis upToY(String label) {
    return ChartAxis.upTo(label, largestY);
  }

  /** Draws all lines on a chart. */
  public Chart on(Chart chart) {
    for (int i = 0; i < names.size(); i++) {
      List<double[]> line = points.get(i);
      if (!line.isEmpty()) {
        chart.line(
            names.get(i),
            COLORS.get(i % COLORS.size()),
            DASHES.get(i / COLORS.size() % DASHES.size()),
            line.stream().mapToDouble(point -> point[0]).toArray(),
            line.stream().mapToDouble(point -> point[1]).toArray());
      }
    }
    return chart;
  }
}
