package org.gristway.cli;

/** Points of a picture, by their coordinates. */
record Points(double[] xs, double[] ys) {}
