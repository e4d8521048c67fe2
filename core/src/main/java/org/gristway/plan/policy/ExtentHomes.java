package org.gristway.plan.policy;

import org.gristway.chunk.ChunkHomes;
import org.gristway.plan.Draws;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.Homes;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.World;
import org.jspecify.annotations.Nullable;

/**
 * The rank that each extent is at home with, in every epoch. By rendezvous hashing (Thaler and
 * Ravishankar, 1998): each rank draws a number for the extent, and the highest wins. Without one of
 * them, the others' numbers are what they were.
 */
final class ExtentHomes {

  private final ExtentCuts cuts;
  private final SampleLayout layout;
  private final World world;
  private final @Nullable ChunkHomes chunks; // if chunks are on nodes
  private final long[] rankKeys;

  ExtentHomes(PlanInputs inputs) {
    this.cuts = inputs.cuts();
    this.layout = inputs.layout();
    this.world = inputs.world();
    this.chunks =
        inputs.settings().exchange().homes() == Homes.PLACED
            ? ChunkHomes.deal(layout.chunkCount(), layout::chunkBytes, world.nodes())
            : null;
    this.rankKeys = new long[world.ranks()];
    for (int rank = 0; rank < rankKeys.length; rank++) {
      rankKeys[rank] = Draws.key(inputs.seed(), rank);
    }
  }

  int rankOf(long extent) {
    if (chunks == null) {
      return highest(extent, 0, rankKeys.length);
    }
    int node = chunks.nodeOf(chunkOf(cuts.firstSample(extent)));
    return highest(extent, world.firstRank(node), world.firstRank(node + 1));
  }

  private int highest(long extent, int first, int end) {
    long key = Draws.key(extent);
    int home = first;
    long highest = -1;
    for (int rank = first; rank < end; rank++) {
      long drawn = new Draws(key ^ rankKeys[rank]).below(Long.MAX_VALUE);
      if (drawn > highest) {
        highest = drawn;
        home = rank;
      }
    }
    return home;
  }

  /** The chunk that holds a sample: the last one that begins at or before it. */
  private int chunkOf(long sample) {
    int low = 0;
    int high = layout.chunkCount() - 1;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (layout.firstSample(middle) <= sample) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
}
