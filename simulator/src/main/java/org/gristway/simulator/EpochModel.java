package org.gristway.simulator;

/**
 * What an epoch takes by the model of Yang and Cong (2019), in a formula: bytes and bytes a second,
 * everything that can go on at the same time does. It knows no latencies, no order and no memory,
 * and must agree with the simulation where those do not matter.
 *
 * @param datasetBytes of all samples
 * @param ranks each on a node of its own
 * @param batchSize of a rank
 * @param cachedShare of the dataset, in all memories together
 */
public record EpochModel(
    double datasetBytes, int ranks, int batchSize, double cachedShare, CostModel cost) {

  /** Of a scenario with one rank on each node: all that nodes can keep is kept. */
  public static EpochModel of(Scenario scenario) {
    double bytes = scenario.dataset().samples() * scenario.dataset().mean();
    double kept = (double) scenario.nodes() * (scenario.memory() + scenario.disk());
    return new EpochModel(
        bytes, scenario.nodes(), scenario.batchSize(), Math.min(1, kept / bytes), scenario.cost());
  }

  /** Training alone. */
  public double compute() {
    return datasetBytes / ranks / cost.work().computeRate();
  }

  private double seconds(double fromStore, double moved) {
    double preparation = datasetBytes / ranks / cost.work().preparationRate();
    double store =
        Math.max(
            fromStore / cost.storage().total().at(ranks),
            fromStore / ranks / cost.storage().rate());
    double network = moved / ranks / cost.network().rate();
    return Math.max(Math.max(compute(), preparation), Math.max(store, network));
  }

  /** Everything from the store: it stops scaling where that is used up. */
  public double plain() {
    return seconds(datasetBytes, 0);
  }

  /** What is cached comes from a random owner. */
  public double randomOwner() {
    double elsewhere = (ranks - 1.0) / ranks;
    return seconds((1 - cachedShare) * datasetBytes, cachedShare * elsewhere * datasetBytes);
  }

  /** What is cached goes to its owner, but for what makes the batches equal. */
  public double localityAware() {
    double moved = cachedShare * movedShare(ranks, batchSize) * datasetBytes;
    return seconds((1 - cachedShare) * datasetBytes, moved);
  }

  /** The share of a global batch that has to move: half the mean deviation of a binomial number. */
  public static double movedShare(int ranks, int batchSize) {
    return Math.sqrt((1 - 1.0 / ranks) / (2 * Math.PI * batchSize));
  }
}
