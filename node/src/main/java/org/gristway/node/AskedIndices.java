package org.gristway.node;

import java.util.BitSet;
import java.util.TreeMap;
import org.gristway.Failure;
import org.gristway.plan.SampleSet;

/**
 * Which indices were asked for in an epoch, by all ranks of a machine. With redirection an index
 * only says that a sample is wanted, so each may be asked for once, but for the few that a sampler
 * repeats to give every rank as many. Any thread may call.
 */
final class AskedIndices {

  /** Ranks may be an epoch apart, as long as one of them finishes it. */
  private static final int EPOCHS = 2;

  private final SampleSet set;
  private final long samples;
  private final int ranks;
  private final TreeMap<Long, Epoch> epochs = new TreeMap<>();

  private static final class Epoch {
    final long[] asked;
    final BitSet begun = new BitSet(); // ranks
    long repeats;

    Epoch(long samples) {
      asked = new long[Math.toIntExact(samples / Long.SIZE) + 1];
    }

    boolean mark(long index) {
      int word = (int) (index >>> 6);
      boolean again = (asked[word] >>> index & 1) == 1;
      asked[word] |= 1L << index;
      return again;
    }
  }

  AskedIndices(SampleSet set, long samples, int ranks) {
    this.set = set;
    this.samples = samples;
    this.ranks = ranks;
  }

  /**
   * Tells that a rank begins an epoch. If it has begun it before, the epoch is begun anew, and what
   * was asked for is forgotten.
   */
  synchronized void begin(long epoch, int rank) {
    Epoch known = epochs.get(epoch);
    if (known == null || known.begun.get(rank)) {
      known = new Epoch(samples);
      epochs.put(epoch, known);
      while (epochs.size() > EPOCHS) {
        epochs.remove(epochs.firstKey() == epoch ? epochs.lastKey() : epochs.firstKey());
      }
    }
    known.begun.set(rank);
  }

  /**
   * Notes a request.
   *
   * @throws Failure (wrong call) if it is none that a sampler without replacement makes
   */
  synchronized void ask(long epoch, long[] indices) {
    for (long index : indices) {
      if (!set.contains(index)) {
        throw Failure.wrongCall(
            "index %d is not among the %d that may be asked for: does the sampler draw from another"
                + " split, or from the whole dataset?",
            index, set.count());
      }
    }
    Epoch now = epochs.computeIfAbsent(epoch, _ -> new Epoch(samples));
    for (long index : indices) {
      if (now.mark(index) && ++now.repeats >= ranks) {
        throw Failure.wrongCall(
            "index %d was asked for before in epoch %d: with redirect=True each index may be asked for"
                + " once per epoch (is set_epoch called before each epoch? does the sampler draw"
                + " without replacement? do several ranks each draw everything?)",
            index, epoch);
      }
    }
  }
}
