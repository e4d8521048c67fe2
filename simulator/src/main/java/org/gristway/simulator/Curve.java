package org.gristway.simulator;

import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.gristway.Failure;

/**
 * A function by some of its points: straight lines between them, and level beyond. Immutable.
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
    if (span == 0) {
      return below.getValue(); // which may be infinite
    }
    double part = (x - below.getKey()) / span;
    return below.getValue() + part * (above.getValue() - below.getValue());
  }

  /** As {@link Values} reads it. */
  @Override
  public String toString() {
    return points.entrySet().stream()
        .map(point -> Values.number(point.getKey()) + "=" + Values.number(point.getValue()))
        .collect(Collectors.joining(" "));
  }
}
