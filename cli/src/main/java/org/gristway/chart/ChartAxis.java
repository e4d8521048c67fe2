package org.gristway.chart;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A direction of a chart: what is measured along it, from where to where.
 *
 * @param label with the unit
 * @param low the value at its start
 * @param high the value at its end, greater than {@code low}
 * @param base 0 if equal lengths are equal differences; otherwise equal lengths are equal ratios,
 *     and the powers of this are marked
 */
public record ChartAxis(String label, double low, double high, int base) {

  private static final int MOST_TICKS = 6;

  public ChartAxis {
    if (!(high > low) || (base != 0 && (base < 2 || !(low > 0)))) { // also for what is no number
      throw new IllegalArgumentException(low + " to " + high + " by " + base);
    }
  }

  public ChartAxis(String label, double low, double high) {
    this(label, low, high, 0);
  }

  /** From zero to the next tick at or above the largest value. */
  public static ChartAxis upTo(String label, double largest) {
    double top = largest > 0 ? largest : 1;
    double step = step(top);
    return new ChartAxis(label, 0, step * Math.ceil(top / step - 1e-9));
  }

  /**
   * Equal lengths for equal ratios, from the power at or below the smallest value to the one at or
   * above the largest.
   */
  public static ChartAxis ofPowers(String label, int base, double smallest, double largest) {
    double low = Math.pow(base, Math.floor(power(base, smallest) + 1e-9));
    double high = Math.pow(base, Math.ceil(power(base, largest) - 1e-9));
    return new ChartAxis(label, low, high > low ? high : low * base, base);
  }

  private static double power(int base, double value) {
    return Math.log(value) / Math.log(base);
  }

  /** Where a value is, from 0 at the start to 1 at the end; what lies outside is at the rim. */
  double part(double value) {
    double part =
        base == 0
            ? (value - low) / (high - low)
            : Math.log(Math.max(value, low) / low) / Math.log(high / low);
    return Math.clamp(part, 0, 1);
  }

  /** Round values, as many as can be told apart. */
  List<Double> ticks() {
    List<Double> ticks = new ArrayList<>();
    double step = base == 0 ? step(high - low) : 1;
    double from = base == 0 ? low : power(base, low);
    double to = base == 0 ? high : power(base, high);
    for (long i = (long) Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) {
      ticks.add(base == 0 ? i * step : Math.pow(base, i));
    }
    return ticks;
  }

  /** How a value on this axis is written. */
  String text(double value) {
    if (base != 0 && value < 1) {
      return new BigDecimal(value).round(new MathContext(2)).stripTrailingZeros().toPlainString();
    }
    double smallest = base == 0 ? step(high - low) : value;
    int digits = (int) Math.clamp(Math.ceil(-Math.log10(smallest) - 1e-9), 0, 6);
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
