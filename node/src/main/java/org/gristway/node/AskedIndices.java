package org.gristway.node;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import org.gristway.Failure;
import org.gristway.plan.SampleSet;

/**
 * Which indices were asked for in an epoch, by all ranks of a machine. With redirection an index
 * only says that a sample is wanted, so each may be asked for once, but for the few that a sampler
 * repeats to give every rank as many, or to fill last batches. Any thread may call.
 */
final class AskedIndices {

  /** Ranks may be an iteration apart, as long as one of them finishes it. */
  private static final int KEPT = 2;

  /** Rarer than this, and it was no accident. */
  private static final double LOG_OF_NEVER = Math.log(1e-9);

  private final SampleSet set;
  private final long samples;
  private final int ranks;
  private final Consumer<String> notices;
  private final Map<Iteration, Asked> asked = new LinkedHashMap<>();

  private boolean hasNoticed;

  /** An epoch may be iterated over again, and then all is there to be asked for again. */
  private record Iteration(long epoch, long number) {}

  private static final class Asked {
    final long[] asked;
    long repeats;
    int mostAtOnce;

    Asked(long samples) {
      asked = new long[Math.toIntExact(samples / Long.SIZE) + 1];
    }

    boolean mark(long index) {
      int word = (int) (index >>> 6);
      boolean again = (asked[word] >>> index & 1) == 1;
      asked[word] |= 1L << index;
      return again;
    }

    void unmark(long index) {
      asked[(int) (index >>> 6)] &= ~(1L << index);
    }

    long count() {
      return LongStream.of(asked).map(Long::bitCount).sum();
    }

    long countAlsoIn(Asked other) {
      long count = 0;
      for (int i = 0; i < asked.length; i++) {
        count += Long.bitCount(asked[i] & other.asked[i]);
      }
      return count;
    }
  }

  /**
   * @param set of indices that may be asked for
   * @param notices are told if a part of the set seems to be meant
   */
  AskedIndices(SampleSet set, long samples, int ranks, Consumer<String> notices) {
    this.set = set;
    this.samples = samples;
    this.ranks = ranks;
    this.notices = notices;
  }

  /** What a request has added, to be taken back if it comes to nothing. */
  static final class Noted {
    private final Asked of;
    private final long[] indices; // that nobody had asked for before
    private int count;
    private long repeats;

    private Noted(Asked of, int most) {
      this.of = of;
      indices = new long[most];
    }

    private void takeBack() {
      for (int i = 0; i < count; i++) {
        of.unmark(indices[i]);
      }
      of.repeats -= repeats;
      count = 0;
      repeats = 0;
    }
  }

  /**
   * Notes a request. One that is refused leaves nothing behind.
   *
   * @param iteration which of the trainer's it belongs to, from 1
   * @throws Failure (wrong call) if it is none that a sampler without replacement makes
   */
  synchronized Noted ask(long epoch, long iteration, long[] indices) {
    for (long index : indices) {
      if (!set.contains(index)) {
        throw Failure.wrongCall(
            "index %d is not among the %d that may be asked for: does the sampler draw from another"
                + " split, or from the whole dataset?",
            index, set.count());
      }
    }
    Asked now = asked.computeIfAbsent(new Iteration(epoch, iteration), _ -> new Asked(samples));
    now.mostAtOnce = Math.max(now.mostAtOnce, indices.length);
    while (asked.size() > KEPT) {
      Iterator<Asked> eldest = asked.values().iterator();
      Asked over = eldest.next();
      compare(over, eldest.next());
      asked.remove(asked.keySet().iterator().next());
    }
    Noted noted = new Noted(now, indices.length);
    for (long index : indices) {
      if (!now.mark(index)) {
        noted.indices[noted.count++] = index;
      } else if (now.repeats < mostRepeats(now)) {
        now.repeats++;
        noted.repeats++;
      } else {
        noted.takeBack();
        throw Failure.wrongCall(
            "index %d was asked for before in epoch %d: with redirect=True each index may be asked for"
                + " once per epoch (does the sampler draw without replacement? do several ranks each"
                + " draw everything? was an epoch that is not a DataLoader's broken off, and set_epoch"
                + " not called after that?)",
            index, epoch);
      }
    }
    return noted;
  }

  /**
   * A sampler repeats fewer indices than there are ranks to give each as many, or fewer than a
   * batch of each to fill their last ones.
   */
  private long mostRepeats(Asked now) {
    return ranks == 1 ? 0 : (long) ranks * now.mostAtOnce - 1;
  }

  /** Takes back a request that came to nothing. */
  synchronized void takeBack(Noted noted) {
    noted.takeBack();
  }

  /**
   * Whoever draws from one part of the set only, as from a split of the dataset, believes to get
   * that part, and does not: another part's samples answer as well. Two iterations of a sampler
   * over everything that are broken off have some indices in common, and some not.
   */
  private void compare(Asked before, Asked after) {
    long first = before.count();
    long second = after.count();
    long both = before.countAlsoIn(after);
    boolean leavesOutMoreThanTails = set.count() - first >= (long) ranks * before.mostAtOnce;
    double part = (double) first / set.count();
    double logOfChance =
        both == second ? second * Math.log(part) : both == 0 ? second * Math.log1p(-part) : 0;
    if (leavesOutMoreThanTails && logOfChance < LOG_OF_NEVER && !hasNoticed) {
      hasNoticed = true;
      notices.accept(
          String.format(
              Locale.ROOT,
              "an epoch asks for %d of %d indices and the next for %s: is this a split, such as"
                  + " random_split makes? With redirect=True any sample answers an index, also one of"
                  + " another split, unless MapDataset is given the split's own indices=",
              first,
              set.count(),
              both == 0 ? "none of these" : "the same"));
    }
  }
}
