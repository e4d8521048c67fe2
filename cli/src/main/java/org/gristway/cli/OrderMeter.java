package org.gristway.cli;

import java.util.Arrays;
import org.gristway.plan.EpochPositions;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.LabelCounts;
import org.gristway.plan.LabelMix;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.Quality;

/**
 * Measures the order of an epoch, step by step, and how alike that of the next is. It costs 8 bytes
 * a sample outside the heap, until it is closed. For one thread.
 */
final class OrderMeter implements AutoCloseable {

  /** Samples that are shown of a dataset. */
  private static final int DOTS = 3_000;

  /** Extents that are shown, and samples of each. */
  private static final int ROWS = 24;

  private static final int DOTS_IN_ROW = 120;

  private final ExtentCuts cuts;
  private final long samples;
  private final long delivered;
  private final Quality quality;
  private final LabelMix labels;
  private final EpochPositions positions;
  private final EpochPositions nextPositions;
  private final EpochBins bins;
  private final double[] mates;
  private final double[] matesByChance;
  private long step;

  OrderMeter(PlanInputs inputs, LabelCounts counts) {
    this.cuts = inputs.cuts();
    this.samples = inputs.layout().sampleCount();
    this.delivered = inputs.shares().samples();
    this.quality = new Quality(cuts);
    this.labels = new LabelMix(counts);
    this.positions = new EpochPositions(samples);
    this.nextPositions = new EpochPositions(samples);
    this.bins = new EpochBins(inputs.shares().steps());
    this.mates = new double[bins.count()];
    this.matesByChance = new double[bins.count()];
  }

  /** Adds a step of the epoch: the samples that each rank gets, without repeats. */
  void add(long[][] ofRanks) {
    Quality.Mates found = quality.add(ofRanks);
    int bin = bins.of(step++);
    mates[bin] += found.pairs();
    matesByChance[bin] += found.byChance();
    labels.add(ofRanks);
    addTo(positions, ofRanks);
  }

  /** Adds a step of the next epoch. */
  void addNext(long[][] ofRanks) {
    addTo(nextPositions, ofRanks);
  }

  private static void addTo(EpochPositions positions, long[][] ofRanks) {
    for (long[] batch : ofRanks) {
      for (long sample : batch) {
        positions.add(sample);
      }
    }
  }

  /** What has been measured, once both epochs are complete. */
  OrderMeasures measures() {
    double[] ratios = new double[mates.length];
    Arrays.setAll(ratios, i -> matesByChance[i] == 0 ? 1 : mates[i] / matesByChance[i]);
    int rows = (int) Math.min(ROWS, cuts.count());
    return new OrderMeasures(
        quality.report(),
        positions.correlationWith(nextPositions),
        labels.report(),
        bins.levels(ratios),
        places(),
        extents(rows),
        rows);
  }

  private Points places() {
    Dots dots = new Dots(DOTS);
    int count = (int) Math.min(DOTS, samples);
    for (int i = 0; i < count; i++) {
      long sample = i * samples / count;
      dots.add(sample, 100.0 * (sample + 0.5) / samples);
    }
    return dots.points();
  }

  private Points extents(int rows) {
    Dots dots = new Dots(rows * DOTS_IN_ROW);
    for (int row = 0; row < rows; row++) {
      long extent = row * cuts.count() / rows;
      long first = cuts.firstSample(extent);
      long size = cuts.firstSample(extent + 1) - first;
      int count = (int) Math.min(DOTS_IN_ROW, size);
      for (int i = 0; i < count; i++) {
        dots.add(first + i * size / count, row + 0.5);
      }
    }
    return dots.points();
  }

  /** Samples at their places in the epoch, and at heights of their own. */
  private final class Dots {
    private final double[] xs;
    private final double[] ys;
    private int count;

    Dots(int most) {
      this.xs = new double[most];
      this.ys = new double[most];
    }

    void add(long sample, double height) {
      long position = positions.of(sample);
      if (position != EpochPositions.ABSENT) {
        xs[count] = 100.0 * (position + 0.5) / delivered;
        ys[count] = height;
        count++;
      }
    }

    Points points() {
      return new Points(Arrays.copyOf(xs, count), Arrays.copyOf(ys, count));
    }
  }

  @Override
  public void close() {
    positions.close();
    nextPositions.close();
  }
}
