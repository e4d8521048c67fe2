package org.gristway.simulator;

import java.util.List;
import java.util.Locale;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.gristway.Failure;

/** Numbers as scenario files have them: with a unit where that reads better. */
public final class Values {

  private record Unit(String name, double size) {}

  /** The largest first, of those that a number is printed in. */
  private static final List<Unit> BYTES =
      List.of(
          new Unit("TiB", 0x1p40),
          new Unit("TB", 1e12),
          new Unit("GiB", 0x1p30),
          new Unit("GB", 1e9),
          new Unit("MiB", 0x1p20),
          new Unit("MB", 1e6),
          new Unit("KiB", 0x1p10),
          new Unit("KB", 1e3));

  private static final List<Unit> SECONDS =
      List.of(new Unit("us", 1e-6), new Unit("ms", 1e-3), new Unit("s", 1), new Unit("", 1));

  private Values() {}

  /** A time such as "25ms" or "0.4s", in seconds. */
  public static double seconds(String name, String text) {
    double value = parsed(text, List.of(SECONDS));
    if (!(value > 0) || Double.isInfinite(value)) {
      throw Failure.wrongCall("%s: '%s' is not a time (like 25ms, 0.4s)", name, text);
    }
    return value;
  }

  /** A number, or "unlimited". */
  static double number(String name, String text) {
    double value =
        text.equals("unlimited") ? Double.POSITIVE_INFINITY : parsed(text, List.of(BYTES, SECONDS));
    if (Double.isNaN(value)) {
      throw Failure.wrongCall(
          "%s: '%s' is not a number (like 3, 0.5ms, 64KiB, unlimited)", name, text);
    }
    return value;
  }

  /** A number with one of the units, or NaN if it is none. */
  private static double parsed(String text, List<List<Unit>> known) {
    int end = text.length();
    while (end > 0 && Character.isLetter(text.charAt(end - 1))) {
      end--;
    }
    String unit = text.substring(end);
    try {
      double value = Double.parseDouble(text.substring(0, end));
      for (List<Unit> units : known) {
        for (Unit each : units) {
          if (each.name().equals(unit)) {
            return value * each.size();
          }
        }
      }
    } catch (NumberFormatException notOne) {
      // nor is it one in any other unit
    }
    return Double.NaN;
  }

  /** A whole number that is not negative. Up to 18 digits alone are read exactly. */
  static long whole(String name, String text) {
    if (text.matches("[0-9]{1,18}")) {
      return Long.parseLong(text);
    }
    double value = number(name, text);
    if (!(value >= 0) || value != Math.rint(value) || value > Long.MAX_VALUE / 2.0) {
      throw Failure.wrongCall("%s: '%s' is not a whole number", name, text);
    }
    return (long) value;
  }

  /** Points of a curve: "1=66MB 2=86MB", or one value for all. */
  static Curve curve(String name, String text) {
    if (!text.contains("=")) {
      return Curve.constant(positive(name, text));
    }
    NavigableMap<Double, Double> points = new TreeMap<>();
    for (String point : text.split(" +")) {
      String[] sides = point.split("=", 2);
      points.put(number(name, sides[0]), positive(name, sides.length < 2 ? "" : sides[1]));
    }
    return new Curve(points);
  }

  private static double positive(String name, String text) {
    double value = number(name, text);
    if (!(value > 0)) {
      throw Failure.wrongCall("%s must be more than 0, not %s", name, text);
    }
    return value;
  }

  /** As {@link #whole(String, String)} reads it. */
  static String whole(long value) {
    boolean isExact = (long) (double) value == value;
    return isExact ? number(value) : Long.toString(value);
  }

  /**
   * As {@link #number(String, String)} reads it, of bytes, in the largest unit that leaves it
   * whole.
   */
  static String number(double value) {
    if (Double.isInfinite(value)) {
      return plain(value);
    }
    for (Unit unit : BYTES) {
      double inUnit = value / unit.size();
      boolean isWhole = inUnit >= 1 && inUnit == Math.rint(inUnit);
      if (isWhole && inUnit * unit.size() == value) {
        return String.format(Locale.ROOT, "%.0f%s", inUnit, unit.name());
      }
    }
    return plain(value);
  }

  /** As {@link #number(String, String)} reads it, of what is not counted in bytes. */
  static String plain(double value) {
    if (Double.isInfinite(value)) {
      return "unlimited";
    }
    return value == Math.rint(value) && Math.abs(value) < 1e15
        ? String.format(Locale.ROOT, "%.0f", value)
        : String.format(Locale.ROOT, "%s", value);
  }
}
