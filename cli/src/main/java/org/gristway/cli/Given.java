package org.gristway.cli;

import java.util.Arrays;
import org.gristway.handover.Batch;
import org.gristway.plan.Shares;

/**
 * Which samples a trainer was given in a batch: a copy, so that the batch can go back at once.
 * Immutable.
 */
final class Given {

  private final int rank;
  private final long[] requests;
  private final long[] samples;
  private final long[] planned;
  private final boolean[] isRepeat;
  private final boolean[] isPlannedRepeat;

  private Given(int rank, int places) {
    this.rank = rank;
    this.requests = new long[places];
    this.samples = new long[places];
    this.planned = new long[places];
    this.isRepeat = new boolean[places];
    this.isPlannedRepeat = new boolean[places];
  }

  /** Copies them. */
  static Given of(Batch batch, Shares shares) {
    Given given = new Given(batch.rank(), batch.size());
    int fresh = shares.fresh(batch.rank(), batch.step());
    for (int i = 0; i < given.samples.length; i++) {
      given.requests[i] = batch.request(i);
      given.samples[i] = batch.sample(i);
      given.planned[i] = batch.planned(i);
      given.isRepeat[i] = batch.isRepeat(i);
      // The place of a damaged sample is filled with a repeat that the plan knows nothing of.
      given.isPlannedRepeat[i] = given.isRepeat[i] && (i >= fresh || !batch.isDamaged(i));
    }
    return given;
  }

  /** Adds the order that was planned, which damage does not change. */
  void addTo(OrderDigest digest) {
    digest.batch(samples.length);
    for (int i = 0; i < samples.length; i++) {
      digest.place(planned[i], isPlannedRepeat[i]);
    }
  }

  int rank() {
    return rank;
  }

  int places() {
    return samples.length;
  }

  long request(int place) {
    return requests[place];
  }

  long sample(int place) {
    return samples[place];
  }

  /** The samples without repeats. */
  long[] fresh() {
    long[] fresh = new long[samples.length];
    int count = 0;
    for (int i = 0; i < samples.length; i++) {
      if (!isRepeat[i]) {
        fresh[count++] = samples[i];
      }
    }
    return Arrays.copyOf(fresh, count);
  }
}
