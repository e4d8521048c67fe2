package org.gristway.plan.policy;

import org.gristway.chunk.Extent;
import org.gristway.plan.Draws;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.Homes;
import org.gristway.plan.Permutation;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Choice;
import org.gristway.plan.SampleSet;

/**
 * An epoch's extents, dealt to ranks, in the random order in which each reads its own. What a rank
 * gets of an extent is a piece.
 *
 * <p>Samples are counted within the plan's set: of an extent that has been delivered in part, only
 * the rest is dealt, and read only from the first to the last sample of the rest.
 */
abstract class Deal {

  /**
   * What a rank gets of an extent.
   *
   * @param first the rank, within the plan's set, of its first sample
   * @param count its samples of the set
   * @param order in which they are drawn
   * @param extent what is read
   * @param large true if it does not fit a frame
   * @param again true if part of the extent was delivered, and so read, in an earlier segment
   */
  record Piece(
      long first, int count, Permutation order, Extent extent, boolean large, boolean again) {}

  /**
   * The samples of a piece.
   *
   * @param first the rank, within the plan's set, of its first sample
   * @param key of the extent
   * @param from how many samples of the extent belong to the rank before
   */
  record Run(long first, int count, long key, long from, boolean again) {}

  final PlanInputs inputs;
  final ExtentCuts cuts;
  final SampleSet samples;
  private final long inExtentKey;

  Deal(PlanInputs inputs, long epoch) {
    this.inputs = inputs;
    this.cuts = inputs.cuts();
    this.samples = inputs.samples();
    this.inExtentKey = inputs.key(epoch, Choice.IN_EXTENT);
  }

  /** The deal of an epoch, as the plan's settings want it. */
  static Deal of(PlanInputs inputs, long epoch) {
    return inputs.settings().exchange().homes() == Homes.AFRESH
        ? new FreshDeal(inputs, epoch)
        : new HomeDeal(inputs, epoch);
  }

  /** How many pieces a rank gets. */
  abstract long pieces(int rank);

  /** How many samples a rank's pieces have. */
  abstract long samples(int rank);

  /** The samples of a piece. */
  abstract Run run(int rank, long index);

  /**
   * The rank that reads a sample whenever it is wanted in place of one that is due, or {@code
   * asker}, if that can read whatever it likes.
   */
  abstract int readerOf(long sample, int asker);

  final long samplesIn(long extent) {
    return samples.rank(cuts.firstSample(extent + 1)) - samples.rank(cuts.firstSample(extent));
  }

  /**
   * Part of an extent. Which end of it comes first is random.
   *
   * @param from how many of its samples are left to others at one end
   * @param to its samples but those that are left to others at the other end
   */
  final Run run(long extent, long from, long to) {
    long first = samples.rank(cuts.firstSample(extent));
    long count = samplesIn(extent);
    boolean again =
        inputs.segment() > 0 && count < cuts.firstSample(extent + 1) - cuts.firstSample(extent);
    long key = Draws.key(inExtentKey, extent);
    boolean fromBehind = (key & 1) == 1;
    long start = first + (fromBehind ? count - to : from);
    return new Run(start, (int) (to - from), key, from, again);
  }

  /** A piece, and how its samples are drawn and read. */
  final Piece piece(int rank, long index) {
    Run run = run(rank, index);
    Extent span = cuts.span(samples.nth(run.first()), samples.nth(run.first() + run.count() - 1));
    Permutation inside = new Permutation(run.count(), Draws.key(run.key(), run.from()));
    return new Piece(run.first(), run.count(), inside, span, cuts.isLarge(span), run.again());
  }

  final long sample(Piece piece, int draw) {
    return samples.nth(piece.first() + piece.order().at(draw));
  }
}
