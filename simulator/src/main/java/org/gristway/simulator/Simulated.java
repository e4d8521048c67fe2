package org.gristway.simulator;

import java.util.List;

/**
 * What a policy would take.
 *
 * @param reason why it cannot run; empty if it can
 * @param seconds of the run
 * @param stallSeconds that the rank that waited longest for data has waited
 * @param storageBytes read from the store, by all nodes
 * @param networkBytes sent between nodes
 * @param peakResidentBytes of the node that had most in memory
 * @param epochSeconds of each epoch
 * @param nodes how evenly the work is spread over them
 * @param timeline of the first node: what it had done by some moments of the run
 */
public record Simulated(
    String policy,
    String reason,
    double seconds,
    double stallSeconds,
    long storageBytes,
    long networkBytes,
    long peakResidentBytes,
    List<Double> epochSeconds,
    Nodes nodes,
    List<Moment> timeline) {

  /**
   * A node at a moment of the run.
   *
   * @param seconds since the run began
   * @param residentBytes that it holds in memory
   * @param storageBytes that it has asked the store for by then
   * @param networkBytes that it has received from other nodes by then
   * @param stallSeconds that it has waited for data by then
   */
  public record Moment(
      double seconds,
      long residentBytes,
      long storageBytes,
      long networkBytes,
      double stallSeconds) {}

  /** Something that every node has some of. */
  public record Balance(double least, double mean, double most) {

    /** How much more than the mean the node has that has most: 1 if all have the same. */
    public double mostToMean() {
      return mean == 0 ? 1 : most / mean;
    }
  }

  /**
   * What nodes have done in a run.
   *
   * @param storage bytes read from the store
   * @param network bytes received from other nodes
   * @param stall seconds that the rank waited for data that waited longest
   */
  public record Nodes(Balance storage, Balance network, Balance stall) {}

  private static final Balance NOTHING = new Balance(0, 0, 0);

  static Simulated refused(String policy, String reason) {
    return new Simulated(
        policy,
        reason,
        Double.NaN,
        Double.NaN,
        0,
        0,
        0,
        List.of(),
        new Nodes(NOTHING, NOTHING, NOTHING),
        List.of());
  }

  public boolean ran() {
    return reason.isEmpty();
  }

  /** What part of the run the rank has waited for data that waited longest. */
  public double stallShare() {
    return seconds == 0 ? 0 : stallSeconds / seconds;
  }
}
