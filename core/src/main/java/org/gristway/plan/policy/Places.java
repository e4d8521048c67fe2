package org.gristway.plan.policy;

import java.util.ArrayDeque;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Requests;
import org.gristway.plan.PlanStep;
import org.gristway.plan.Shares;

/**
 * The places in a rank's batches, one after the other: which step and position comes next, what a
 * plain loader would be asked for there, and how places are filled that no sample is due for.
 */
final class Places {

  private final PlanInputs inputs;
  private final Shares shares;
  private final Requests requests;
  private final int rank;
  private final long[] batch; // the samples of this one that are not repeats

  private long step;
  private int position;
  private int fresh;
  private long firstRequest;

  Places(PlanInputs inputs, long epoch, int rank) {
    this.inputs = inputs;
    this.shares = inputs.shares();
    this.requests = inputs.requests(epoch);
    this.rank = rank;
    this.batch = new long[Math.clamp(shares.of(rank), 1, inputs.settings().batchSize())];
    enter(0);
  }

  private void enter(long newStep) {
    step = newStep;
    position = 0;
    if (!isDone()) {
      fresh = shares.fresh(rank, step);
      firstRequest = shares.firstRequest(rank, step);
    }
  }

  /** True when the epoch is over for this rank. */
  boolean isDone() {
    return step == shares.steps();
  }

  /** True if the next place is of this step. */
  boolean isIn(long ofStep) {
    return step == ofStep && !isDone();
  }

  /** True if a sample is due at the next place; otherwise {@link #repeat} fills it. */
  boolean isFresh() {
    return position < fresh;
  }

  /** What a plain loader would be asked for at the next place. */
  long request() {
    return requests.at(firstRequest + position);
  }

  /** Gives a sample to the next place. */
  PlanStep.Deliver deliver(long sample, int frame) {
    return deliver(request(), sample, frame);
  }

  /** Gives a sample to the next place, in answer to a request that the lane has made itself. */
  PlanStep.Deliver deliver(long request, long sample, int frame) {
    batch[position] = sample;
    return place(request, sample, frame, false);
  }

  /**
   * Fills a place with a sample of the same batch, each in turn; if the batch has none, with one
   * that is read for it.
   */
  void repeat(ArrayDeque<PlanStep> steps) {
    long sample;
    if (position == 0) {
      sample = repeated(rank);
      batch[0] = sample;
      fresh = 0;
      steps.add(new PlanStep.Load(inputs.layout().location(sample), PlanStep.IN_BATCH, true));
    } else {
      sample = batch[position % Math.max(1, fresh)];
    }
    steps.add(place(sample, sample, PlanStep.IN_BATCH, true));
  }

  /** The sample that fills a rank's batch where none is due. */
  long repeated(int ofRank) {
    return requests.at(ofRank % inputs.samples().count());
  }

  /** Fills the first place of a batch that has no sample with one that another rank has pushed. */
  PlanStep.Deliver repeatReceived(long sample) {
    batch[0] = sample;
    fresh = 0;
    return place(sample, sample, PlanStep.RECEIVED, true);
  }

  private PlanStep.Deliver place(long request, long sample, int frame, boolean repeat) {
    PlanStep.Deliver deliver =
        new PlanStep.Deliver(step, position, rank, request, sample, frame, repeat);
    position++;
    if (position == shares.places(rank, step)) {
      enter(step + 1);
    }
    return deliver;
  }
}
