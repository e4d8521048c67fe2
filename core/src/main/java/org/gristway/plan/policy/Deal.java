package org.gristway.plan.policy;

import java.util.Arrays;
import org.gristway.chunk.Extent;
import org.gristway.plan.Draws;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.Permutation;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Choice;
import org.gristway.plan.SampleSet;
import org.gristway.plan.Shares;

/**
 * An epoch's extents in random order, dealt to ranks so that each gets exactly its share of
 * samples. An extent that straddles a border is cut there; what a rank gets of an extent is a
 * piece.
 *
 * <p>Which end of an extent a cut leaves to the next rank is random: the samples that a short epoch
 * leaves out, or that share a rank, are not the same in every epoch.
 *
 * <p>Samples are counted within the plan's set: of an extent that has been delivered in part, only
 * the rest is dealt, and read only from the first to the last sample of the rest.
 */
final class Deal {

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

  private final PlanInputs inputs;
  private final ExtentCuts cuts;
  private final SampleSet samples;
  private final long[] extents; // those with samples of the set; empty if that is all
  private final Permutation order;
  private final long inExtentKey;
  private final long[] startPiece; // of each rank, and of the one after the last
  private final long[] startSample; // how many samples of that piece belong to the rank before

  Deal(PlanInputs inputs, long epoch) {
    this.inputs = inputs;
    this.cuts = inputs.cuts();
    this.samples = inputs.samples();
    this.extents = samples.isAll() ? new long[0] : extentsLeft();
    long count = samples.isAll() ? cuts.count() : extents.length;
    this.order = new Permutation(count, inputs.key(epoch, Choice.EXTENTS));
    this.inExtentKey = inputs.key(epoch, Choice.IN_EXTENT);
    int ranks = inputs.world().ranks();
    this.startPiece = new long[ranks + 1];
    this.startSample = new long[ranks + 1];
    findBorders(count);
  }

  private long[] extentsLeft() {
    long[] left = new long[1024];
    int count = 0;
    long before = 0;
    for (long extent = 0; extent < cuts.count(); extent++) {
      long behind = samples.rank(cuts.firstSample(extent + 1));
      if (behind > before) {
        if (count == left.length) {
          left = Arrays.copyOf(left, 2 * count);
        }
        left[count++] = extent;
      }
      before = behind;
    }
    return Arrays.copyOf(left, count);
  }

  private void findBorders(long count) {
    Shares shares = inputs.shares();
    int ranks = inputs.world().ranks();
    if (ranks == 1 && shares.samples() == samples.count()) {
      startPiece[1] = count;
      return;
    }
    long piece = 0;
    long dealt = 0; // samples of the pieces before
    for (int rank = 1; rank <= ranks; rank++) {
      long border = shares.before(rank - 1) + shares.of(rank - 1);
      while (piece < count && dealt + samplesIn(extent(piece)) <= border) {
        dealt += samplesIn(extent(piece));
        piece++;
      }
      startPiece[rank] = piece;
      startSample[rank] = border - dealt;
    }
  }

  private long extent(long piece) {
    long at = order.at(piece);
    return samples.isAll() ? at : extents[(int) at];
  }

  private long samplesIn(long extent) {
    return samples.rank(cuts.firstSample(extent + 1)) - samples.rank(cuts.firstSample(extent));
  }

  /** How many pieces a rank gets. */
  long pieces(int rank) {
    return startPiece[rank + 1] - startPiece[rank] + (startSample[rank + 1] > 0 ? 1 : 0);
  }

  /** The samples of a piece, and how they are drawn and read. */
  Piece piece(int rank, long index) {
    Run run = run(rank, index);
    Extent span = cuts.span(samples.nth(run.first()), samples.nth(run.first() + run.count() - 1));
    Permutation inside = new Permutation(run.count(), Draws.key(run.key(), run.from()));
    return new Piece(run.first(), run.count(), inside, span, cuts.isLarge(span), run.again());
  }

  /**
   * The samples of a piece.
   *
   * @param first the rank, within the plan's set, of its first sample
   * @param key of the extent
   * @param from how many samples of the extent belong to the rank before
   */
  record Run(long first, int count, long key, long from, boolean again) {}

  Run run(int rank, long index) {
    long number = startPiece[rank] + index;
    long extent = extent(number);
    long first = samples.rank(cuts.firstSample(extent));
    long end = samples.rank(cuts.firstSample(extent + 1));
    boolean again =
        inputs.segment() > 0
            && end - first < cuts.firstSample(extent + 1) - cuts.firstSample(extent);
    long count = end - first;
    long from = index == 0 ? startSample[rank] : 0;
    long to = number == startPiece[rank + 1] ? startSample[rank + 1] : count;
    long key = Draws.key(inExtentKey, extent);
    boolean fromBehind = (key & 1) == 1;
    long start = first + (fromBehind ? count - to : from);
    return new Run(start, (int) (to - from), key, from, again);
  }

  long sample(Piece piece, int draw) {
    return samples.nth(piece.first() + piece.order().at(draw));
  }
}
