package org.gristway.cli;

/**
 * How often a label has which share of a batch, in bins of a few samples.
 *
 * @param middles of the bins, in percent of the batch
 * @param width of a bin
 * @param found how often, in percent
 * @param expected how often by chance
 */
record DemoLabelShares(double[] middles, double width, double[] found, double[] expected) {

  private static final int BIN = 4;

  /** Bins on each side of the one in the middle: more than four deviations of 256 samples. */
  private static final int SIDE_BINS = 7;

  /**
   * @param shares by batch and label; every label is as frequent as the others
   */
  static DemoLabelShares of(double[][] shares, int batchSize) {
    int labels = shares.length == 0 ? 1 : shares[0].length;
    double chance = 1.0 / labels;
    int firstBin = Math.max(0, (int) (batchSize * chance) / BIN - SIDE_BINS);
    int bins = 2 * SIDE_BINS + 1;
    double[] middles = new double[bins];
    double[] found = new double[bins];
    double[] expected = new double[bins];
    for (int i = 0; i < bins; i++) {
      middles[i] = 100.0 * ((firstBin + i) * BIN + (BIN - 1) / 2.0) / batchSize;
    }
    double weight = 100.0 / Math.max(1, shares.length * labels);
    for (double[] batch : shares) {
      for (double share : batch) {
        int count = (int) Math.round(share * batchSize);
        found[Math.clamp(count / BIN - firstBin, 0, bins - 1)] += weight;
      }
    }
    // The chance of each count comes from the one before it.
    double probability = Math.pow(1 - chance, batchSize);
    for (int count = 0; count <= batchSize; count++) {
      expected[Math.clamp(count / BIN - firstBin, 0, bins - 1)] += 100 * probability;
      probability *= (batchSize - count) / (count + 1.0) * chance / (1 - chance);
    }
    return new DemoLabelShares(middles, 100.0 * BIN / batchSize, found, expected);
  }
}
