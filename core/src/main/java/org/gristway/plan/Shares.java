package org.gristway.plan;

/**
 * How many samples each rank gets at each step. Every rank has the same number of steps; all
 * batches are full except the last.
 */
public final class Shares {

  private final long samples;
  private final int ranks;
  private final int batchSize;
  private final Tail tail;
  private final long steps;

  public Shares(long samples, int ranks, int batchSize, Tail tail) {
    long global = (long) ranks * batchSize;
    this.ranks = ranks;
    this.batchSize = batchSize;
    this.tail = tail;
    this.steps = tail == Tail.DROP ? samples / global : (samples + global - 1) / global;
    this.samples = tail == Tail.DROP ? steps * global : samples;
  }

  /** Batches of each rank. */
  public long steps() {
    return steps;
  }

  /** Samples that are delivered to all ranks, repeats not counted. */
  public long samples() {
    return samples;
  }

  /** Samples that a rank gets, repeats not counted. */
  public long of(int rank) {
    return steps == 0 ? 0 : (steps - 1) * batchSize + ofLastStep(rank);
  }

  /** Samples that all ranks before this one get. */
  public long before(int rank) {
    return steps == 0 ? 0 : rank * (steps - 1) * batchSize + beforeInLastStep(rank);
  }

  /** Samples in a rank's batch, repeats not counted. */
  public int fresh(int rank, long step) {
    return step < steps - 1 ? batchSize : (int) ofLastStep(rank);
  }

  /** Places in a rank's batch: repeats fill those that no sample is due for. */
  public int places(int rank, long step) {
    return step < steps - 1 || tail == Tail.PAD ? batchSize : Math.max(1, fresh(rank, step));
  }

  /** Where in the order of all requests a rank's batch begins. */
  public long firstRequest(int rank, long step) {
    return step * ranks * batchSize
        + (step < steps - 1 ? (long) rank * batchSize : beforeInLastStep(rank));
  }

  /** The rank that a request is of, by its place in the order of all; -1 if it is dropped. */
  public int rankOf(long request) {
    if (request >= samples) {
      return -1;
    }
    long global = (long) ranks * batchSize;
    if (request < (steps - 1) * global) {
      return (int) (request % global / batchSize);
    }
    long inLast = request - (steps - 1) * global;
    long each = inLastStep() / ranks;
    long withOneMore = inLastStep() % ranks * (each + 1);
    return (int)
        (inLast < withOneMore
            ? inLast / (each + 1)
            : inLastStep() % ranks + (inLast - withOneMore) / each);
  }

  /** How many requests of a rank come before this one of its own. */
  public long beforeRequest(int rank, long request) {
    long step = request / ((long) ranks * batchSize);
    return step * batchSize + request - firstRequest(rank, step);
  }

  private long inLastStep() {
    return samples - (steps - 1) * ranks * batchSize;
  }

  private long ofLastStep(int rank) {
    return inLastStep() / ranks + (rank < inLastStep() % ranks ? 1 : 0);
  }

  private long beforeInLastStep(int rank) {
    return rank * (inLastStep() / ranks) + Math.min(rank, inLastStep() % ranks);
  }
}
