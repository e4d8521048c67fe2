package org.gristway.simulator;

import java.util.ArrayList;
import java.util.List;

/**
 * The trainers of a run: when each step begins and ends, and how long they waited for data. For one
 * thread.
 */
final class Training {

  private final CostModel cost;
  private final int ahead;
  private final double[][] ends; // by rank: of the last steps, which batches wait for
  private final double[] end; // by rank: of the step before
  private final RankClock.Built[] next; // by rank
  private final double[] stalled;
  private final List<Double> epochEnds = new ArrayList<>();
  private long steps;

  /**
   * @param ahead batches that a rank may have built and not trained on; 0: none
   */
  Training(Scenario scenario, int ahead) {
    this.cost = scenario.cost();
    this.ahead = ahead;
    int ranks = scenario.ranks();
    this.ends = new double[ranks][Math.max(1, ahead)];
    this.end = new double[ranks];
    this.next = new RankClock.Built[ranks];
    this.stalled = new double[ranks];
  }

  /** When a rank has room for its next batch. */
  double room(int rank) {
    return ahead == 0 ? end[rank] : ends[rank][(int) (steps % ahead)];
  }

  /** When the first rank has room for its next batch. */
  double earliest() {
    double earliest = Double.POSITIVE_INFINITY;
    for (int rank = 0; rank < end.length; rank++) {
      earliest = Math.min(earliest, room(rank));
    }
    return earliest;
  }

  /** When a rank has ended its last step. */
  double end(int rank) {
    return end[rank];
  }

  void took(int rank, RankClock.Built built) {
    next[rank] = built;
  }

  /** Trains on the batches of all ranks. */
  void step() {
    double begin = 0;
    if (cost.work().barrier()) {
      for (int rank = 0; rank < end.length; rank++) {
        begin = Math.max(begin, Math.max(end[rank], next[rank].ready()));
      }
    }
    for (int rank = 0; rank < end.length; rank++) {
      double start = Math.max(begin, Math.max(end[rank], next[rank].ready()));
      stalled[rank] += Math.max(0, next[rank].ready() - end[rank]);
      end[rank] = start + cost.work().compute(next[rank].bytes());
      ends[rank][(int) (steps % ends[rank].length)] = end[rank];
    }
    steps++;
  }

  /** When the slowest rank has ended its last step. */
  double now() {
    double latest = 0;
    for (double each : end) {
      latest = Math.max(latest, each);
    }
    return latest;
  }

  void endEpoch() {
    epochEnds.add(now());
  }

  Simulated outcome(String policy, Machines machines, long peakResident) {
    double most = 0;
    for (double each : stalled) {
      most = Math.max(most, each);
    }
    List<Double> seconds = new ArrayList<>();
    double before = 0;
    for (double each : epochEnds) {
      seconds.add(each - before);
      before = each;
    }
    return new Simulated(
        policy,
        "",
        now(),
        most,
        machines.storageBytes,
        machines.networkBytes,
        peakResident,
        List.copyOf(seconds));
  }
}
