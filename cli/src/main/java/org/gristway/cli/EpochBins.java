package org.gristway.cli;

/**
 * An epoch's steps in stretches, few enough to draw: a curve over the epoch has a value for each.
 * The last step goes with the one before it, since its batch may be too short to say much.
 */
record EpochBins(long steps) {

  private static final int MOST = 200;

  int count() {
    return (int) Math.min(MOST, steps > 1 ? steps - 1 : steps);
  }

  /** The stretch that a step is in. */
  int of(long step) {
    long before = Math.max(1, steps - 1);
    return (int) (Math.min(step, before - 1) * count() / before);
  }

  /** A level for each stretch, against the part of the epoch in percent. */
  Points levels(double[] values) {
    double[] xs = new double[2 * values.length];
    double[] ys = new double[2 * values.length];
    for (int i = 0; i < values.length; i++) {
      xs[2 * i] = 100.0 * i / values.length;
      xs[2 * i + 1] = 100.0 * (i + 1) / values.length;
      ys[2 * i] = values[i];
      ys[2 * i + 1] = values[i];
    }
    return new Points(xs, ys);
  }
}
