package org.gristway.cli;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/** Where the threads of the ranks tell how far they are, and another thread waits for them. */
final class EpochEnds {

  /**
   * The end of an epoch.
   *
   * @param at when the last rank had its last batch, in {@link System#nanoTime}
   */
  record End(long at, String orderDigest) {}

  private final int ranks;
  private final Map<Long, byte[][]> digests = new HashMap<>(); // of epochs that ranks are ending
  private final Map<Long, Integer> ended = new HashMap<>(); // how many ranks have
  private final Map<Long, End> ends = new HashMap<>();
  private @Nullable Throwable failure;

  EpochEnds(int ranks) {
    this.ranks = ranks;
  }

  /** A rank has had the last batch of an epoch. */
  synchronized void reached(long epoch, int rank, byte[] digest) {
    byte[][] all = digests.computeIfAbsent(epoch, _ -> new byte[ranks][]);
    all[rank] = digest;
    if (ended.merge(epoch, 1, Integer::sum) == ranks) {
      ends.put(epoch, new End(System.nanoTime(), OrderDigest.of(Arrays.asList(all))));
      digests.remove(epoch);
      ended.remove(epoch);
      notifyAll();
    }
  }

  /** A rank cannot go on. */
  synchronized void failed(Throwable why) {
    if (failure == null) {
      failure = why;
      notifyAll();
    }
  }

  /** Waits until every rank has ended an epoch; throws whatever keeps one from it. */
  synchronized End await(long epoch) throws IOException {
    while (!ends.containsKey(epoch) && failure == null) {
      try {
        wait();
      } catch (InterruptedException stop) {
        Thread.currentThread().interrupt();
        throw Failure.environment("interrupted while reading");
      }
    }
    End end = ends.remove(epoch);
    if (end == null) {
      throwFailure();
      throw new IllegalStateException("no failure and no end");
    }
    return end;
  }

  private void throwFailure() throws IOException {
    switch (failure) {
      case null -> {}
      case IOException output -> throw output;
      case RuntimeException known -> throw known;
      case Error error -> throw error;
      case Throwable other -> throw new IllegalStateException(other);
    }
  }
}
