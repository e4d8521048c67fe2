package org.gristway.plan.policy;

import java.util.Arrays;
import org.gristway.plan.Permutation;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Choice;
import org.gristway.plan.Shares;

/**
 * An epoch's extents in random order, dealt to ranks so that each gets exactly its share of
 * samples. An extent that straddles a border is cut there.
 *
 * <p>Which end of an extent a cut leaves to the next rank is random: the samples that a short epoch
 * leaves out, or that share a rank, are not the same in every epoch.
 */
final class FreshDeal extends Deal {

  private final long[] extents; // those with samples of the set; empty if that is all
  private final Permutation order;
  private final long[] startPiece; // of each rank, and of the one after the last
  private final long[] startSample; // how many samples of that piece belong to the rank before

  FreshDeal(PlanInputs inputs, long epoch) {
    super(inputs, epoch);
    this.extents = samples.isAll() ? new long[0] : extentsLeft();
    long count = samples.isAll() ? cuts.count() : extents.length;
    this.order = new Permutation(count, inputs.key(epoch, Choice.EXTENTS));
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

  @Override
  long pieces(int rank) {
    return startPiece[rank + 1] - startPiece[rank] + (startSample[rank + 1] > 0 ? 1 : 0);
  }

  @Override
  long samples(int rank) {
    return inputs.shares().of(rank);
  }

  @Override
  Run run(int rank, long index) {
    long number = startPiece[rank] + index;
    long extent = extent(number);
    long from = index == 0 ? startSample[rank] : 0;
    long to = number == startPiece[rank + 1] ? startSample[rank + 1] : samplesIn(extent);
    return run(extent, from, to);
  }

  @Override
  int readerOf(long sample, int asker) {
    return asker;
  }
}
