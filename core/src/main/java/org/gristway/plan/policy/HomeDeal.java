package org.gristway.plan.policy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.gristway.plan.Draws;
import org.gristway.plan.Permutation;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Choice;

/**
 * An epoch's extents where they are at home: each rank reads its own whole, and no others. Ranks
 * have more or less than they deliver. What an epoch drops is drawn over all ranks, and is the end
 * of what each would have read.
 *
 * <p>It costs 8 bytes an extent outside the heap, and a few nanoseconds an extent and rank that may
 * be its home.
 */
final class HomeDeal extends Deal {

  private static final int NOWHERE = -1;

  private final ExtentHomes homes;
  private final MemorySegment extents; // those with samples of the set, by rank
  private final long[] firstExtent; // of each rank, and of the one after the last
  private final Permutation[] orders;
  private final long[] counts; // samples of each rank
  private final long[] pieces;
  private final long[] lastCut; // samples of each rank's last piece that are dropped

  HomeDeal(PlanInputs inputs, long epoch) {
    super(inputs, epoch);
    int ranks = inputs.world().ranks();
    this.homes = new ExtentHomes(inputs);
    this.firstExtent = new long[ranks + 1];
    this.counts = new long[ranks];
    this.extents = byRank();
    this.orders = new Permutation[ranks];
    this.pieces = new long[ranks];
    this.lastCut = new long[ranks];
    long key = inputs.key(epoch, Choice.EXTENTS);
    for (int rank = 0; rank < ranks; rank++) {
      pieces[rank] = firstExtent[rank + 1] - firstExtent[rank];
      orders[rank] = new Permutation(pieces[rank], Draws.key(key, rank));
    }
    drop(new Draws(inputs.key(epoch, Choice.DROPPED)));
  }

  /** Finds every extent's home, and sorts the extents by it. */
  private MemorySegment byRank() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment homeOf = arena.allocate(ValueLayout.JAVA_INT, cuts.count());
      long count = 0;
      for (long extent = 0; extent < cuts.count(); extent++) {
        long inside = samplesIn(extent);
        int home = inside == 0 ? NOWHERE : homes.rankOf(extent);
        homeOf.setAtIndex(ValueLayout.JAVA_INT, extent, home);
        if (home != NOWHERE) {
          counts[home] += inside;
          firstExtent[home + 1]++;
          count++;
        }
      }
      for (int rank = 0; rank < counts.length; rank++) {
        firstExtent[rank + 1] += firstExtent[rank];
      }
      MemorySegment sorted = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG, Math.max(1, count));
      long[] next = firstExtent.clone();
      for (long extent = 0; extent < cuts.count(); extent++) {
        int home = homeOf.getAtIndex(ValueLayout.JAVA_INT, extent);
        if (home != NOWHERE) {
          sorted.setAtIndex(ValueLayout.JAVA_LONG, next[home]++, extent);
        }
      }
      return sorted;
    }
  }

  /** Takes away what fills no global batch, with the same chance for every sample. */
  private void drop(Draws draws) {
    Weights left = new Weights(counts.length);
    for (int rank = 0; rank < counts.length; rank++) {
      left.add(rank, counts[rank]);
    }
    for (long total = samples.count(); total > inputs.shares().samples(); total--) {
      int rank = left.find(draws.below(total));
      left.add(rank, -1);
      counts[rank]--;
      lastCut[rank]++;
      if (lastCut[rank] == samplesIn(extent(rank, pieces[rank] - 1))) {
        pieces[rank]--;
        lastCut[rank] = 0;
      }
    }
  }

  private long extent(int rank, long index) {
    return extents.getAtIndex(ValueLayout.JAVA_LONG, firstExtent[rank] + orders[rank].at(index));
  }

  @Override
  long pieces(int rank) {
    return pieces[rank];
  }

  @Override
  long samples(int rank) {
    return counts[rank];
  }

  @Override
  Run run(int rank, long index) {
    long extent = extent(rank, index);
    return run(extent, 0, samplesIn(extent) - (index == pieces[rank] - 1 ? lastCut[rank] : 0));
  }

  @Override
  int readerOf(long sample, int asker) {
    return homes.rankOf(cuts.extentOf(sample));
  }
}
