package org.gristway.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A direction of a chart: what is measured along it, from where to where.
 *
 * @param label with the unit
 * @param low the value at its start
 * @param high the value at its end, greater than {@code low}
 */
record ChartAxis(String label, double low, double high) {

  private static final int MOST_TICKS = 6;

  ChartAxis {
    if (!(high > low)) { // also for what is not a number
      throw new IllegalArgumentException(low + " to " + high);
    }
  }

  /** From zero to the next tick at or above the largest value. */
  static ChartAxis upTo(String label, double largest) {
    double top = largest > 0 ? largest : 1;
    double step = step(top);
    return new ChartAxis(label, 0, step * Math.ceil(top / step - 1e-9));
  }

  /** Where a value is, from 0 at the start to 1 at the end; what lies outside is at the rim. */
  double part(double value) {
    return Math.clamp((value - low) / (high - low), 0, 1);
  }

  /** Round values, as many as can be told apart. */
  List<Double> ticks() {
    double step = step(high - low);
    List<Double> ticks = new ArrayList<>();
    long first = (long) Math.ceil(low / step - 1e-9);
    for (long i = first; i * step <= high + step * 1e-9; i++) {
      ticks.add(i * step);
    }
    return ticks;
  }

  /** How a value on this axis is written. */
  String text(double value) {
    int digits = (int) Math.clamp(Math.ceil(-Math.log10(step(high - low)) - 1e-9), 0, 6);
    return String.format(Locale.ROOT, "%,." + digits + "f", value);
  }

  /** 1, 2 or 5 times a power of ten, such that there are not too many ticks. */
  private static double step(double length) {
    double power = Math.pow(10, Math.floor(Math.log10(length / MOST_TICKS)));
    for (double factor : new double[] {1, 2, 5}) {
      if (length / (power * factor) <= MOST_TICKS + 1e-9) {
        return power * factor;
      }
    }
    return power * 10;
  }
}
