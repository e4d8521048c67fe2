package org.gristway.node;

import java.util.LinkedHashMap;
import java.util.Map;
import org.gristway.Failure;
import org.gristway.plan.SampleSet;

/**
 * Which indices were asked for in an epoch, by all ranks of a machine. With redirection an index
 * only says that a sample is wanted, so each may be asked for once, but for the few that a sampler
 * repeats to give every rank as many. Any thread may call.
 */
final class AskedIndices {

  /** Ranks may be an iteration apart, as long as one of them finishes it. */
  private static final int KEPT = 2;

  private final SampleSet set;
  private final long samples;
  private final int ranks;
  private final Map<Iteration, Asked> asked = new LinkedHashMap<>();

  /** An epoch may be iterated over again, and then all is there to be asked for again. */
  private record Iteration(long epoch, long number) {}

  private static final class Asked {
    final long[] asked;
    long repeats;

    Asked(long samples) {
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
   * Notes a request.
   *
   * @param iteration which of the trainer's it belongs to, from 1
   * @throws Failure (wrong call) if it is none that a sampler without replacement makes
   */
  synchronized void ask(long epoch, long iteration, long[] indices) {
    for (long index : indices) {
      if (!set.contains(index)) {
        throw Failure.wrongCall(
            "index %d is not among the %d that may be asked for: does the sampler draw from another"
                + " split, or from the whole dataset?",
            index, set.count());
      }
    }
    Asked now = asked.computeIfAbsent(new Iteration(epoch, iteration), _ -> new Asked(samples));
    while (asked.size() > KEPT) {
      asked.remove(asked.keySet().iterator().next());
    }
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
