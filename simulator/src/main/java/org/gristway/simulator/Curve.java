package org.gristway.simulator;

import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.DoubleFunction;
import java.util.stream.Collectors;
import org.gristway.Failure;

/**
 * A function by some of its points: straight lines between them, and level beyond, or up to a point
 * that is infinite or behind one. Immutable.
 *
 * @param points at least one; values are positive
 */
public record Curve(NavigableMap<Double, Double> points) {

  public Curve {
    if (points.isEmpty() || points.values().stream().anyMatch(value -> !(value > 0))) {
      throw Failure.wrongCall("a curve needs a point, and all its values must be more than 0");
    }
    points = new TreeMap<>(points);
  }

  /** The same value everywhere. */
  public static Curve constant(double value) {
    return new Curve(new TreeMap<>(Map.of(1.0, value)));
  }

  public double at(double x) {
    if (points.size() == 1) {
      return points.firstEntry().getValue();
    }
    Map.Entry<Double, Double> below = points.floorEntry(x);
    Map.Entry<Double, Double> above = points.ceilingEntry(x);
    if (below == null || above == null) {
      return (below == null ? points.firstEntry() : points.lastEntry()).getValue();
    }
    double span = above.getKey() - below.getKey();
    if (span == 0 || below.getValue().isInfinite() || above.getValue().isInfinite()) {
      return below.getValue(); // there is no way from or to what is unlimited
    }
    double part = (x - below.getKey()) / span;
    return below.getValue() + part * (above.getValue() - below.getValue());
  }

  /**
   * The same at whole numbers, for people to read.
   *
   * @param parts of 1 that values are rounded to
   */
  public Curve rounded(int parts) {
    NavigableMap<Double, Double> whole = new TreeMap<>();
    points.forEach(
        (x, value) -> whole.put(Math.rint(x), Math.max(1, Math.rint(value * parts)) / parts));
    return new Curve(whole);
  }

  /** As {@link Values} reads it, by how many there are of something. */
  @Override
  public String toString() {
    return text(Values::plain);
  }

  /** As {@link Values} reads it, by a number of bytes. */
  public String textBySize() {
    return text(Values::number);
  }

  private String text(DoubleFunction<String> x) {
    double first = points.firstEntry().getValue();
    if (equals(constant(first))) {
      return Values.number(first);
    }
    return points.entrySet().stream()
        .map(point -> x.apply(point.getKey()) + "=" + Values.number(point.getValue()))
        .collect(Collectors.joining(" "));
  }
}
