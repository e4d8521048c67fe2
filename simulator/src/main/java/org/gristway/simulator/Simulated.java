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
 */
public record Simulated(
    String policy,
    String reason,
    double seconds,
    double stallSeconds,
    long storageBytes,
    long networkBytes,
    long peakResidentBytes,
    List<Double> epochSeconds) {

  static Simulated refused(String policy, String reason) {
    return new Simulated(policy, reason, Double.NaN, Double.NaN, 0, 0, 0, List.of());
  }

  public boolean ran() {
    return reason.isEmpty();
  }
}
