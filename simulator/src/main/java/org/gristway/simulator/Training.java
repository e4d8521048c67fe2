package org.gristway.simulator;

import java.util.ArrayList;
import java.util.List;
import org.gristway.plan.Draws;

/**
 * The trainers of a run: when each step begins and ends, and how long they waited for data. Ranks
 * are numbered here as the sample has them. For one thread.
 */
final class Training {

  private final CostModel cost;
  private final int ahead;
  private final double[][] ends; // by rank: of the last steps, which batches wait for
  private final double[] end; // by rank: of the step before
  private final RankClock.Built[] next; // by rank
  private final double[] stalled;
  private final int others; // ranks that are not simulated
  private final Draws draws;
  private double fullBatch; // bytes
  private double squares; // of how far batches are from the mean of their step, relative to it
  private long degrees; // of freedom
  private double othersEnd; // of the last step
  private final List<Double> epochEnds = new ArrayList<>();
  private long steps;

  /**
   * @param ahead batches that a rank may have built and not trained on; 0: none
   */
  Training(Scenario scenario, NodeSample sample, int ahead) {
    this.cost = scenario.cost();
    this.ahead = ahead;
    int ranks = sample.ranks().length;
    this.others = scenario.ranks() - ranks;
    this.draws = new Draws(scenario.seed());
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
      begin = othersEnd;
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
    if (others > 0 && cost.work().barrier()) {
      othersEnd = begin + slowestOther();
    }
  }

  /**
   * How long the slowest of the ranks trains that are not simulated. Its data is there with that of
   * the others; how large its batch is, is drawn: sizes of many samples are about normal, and those
   * of the ranks that are simulated say how far they lie apart.
   */
  private double slowestOther() {
    double mean = 0;
    for (RankClock.Built built : next) {
      mean += (double) built.bytes() / next.length;
    }
    if (mean > fullBatch / 2) { // the last step of an epoch may have few samples
      fullBatch = Math.max(fullBatch, mean);
      for (RankClock.Built built : next) {
        squares += Math.pow(built.bytes() / mean - 1, 2);
      }
      degrees += next.length - 1;
    }
    double deviation = degrees == 0 ? 0 : Math.sqrt(squares / degrees * fullBatch / mean);
    double largest = 0;
    for (int i = 0; i < others; i++) {
      largest = Math.max(largest, 1 + deviation * Described.normal(draws));
    }
    return cost.work().compute(Math.round(largest * mean));
  }

  /** When the slowest rank has ended its last step. */
  double now() {
    double latest = othersEnd;
    for (double each : end) {
      latest = Math.max(latest, each);
    }
    return latest;
  }

  void endEpoch() {
    epochEnds.add(now());
  }

  /** How long a rank has waited for data so far. */
  double stalled(int rank) {
    return stalled[rank];
  }

  /** Seconds of each epoch that has ended. */
  List<Double> epochSeconds() {
    List<Double> seconds = new ArrayList<>();
    double before = 0;
    for (double each : epochEnds) {
      seconds.add(each - before);
      before = each;
    }
    return List.copyOf(seconds);
  }
}
