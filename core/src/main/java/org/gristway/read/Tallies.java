package org.gristway.read;

import java.util.concurrent.ConcurrentHashMap;
import org.gristway.counters.Counters;

/** All counting of a loader: by epoch for its reports, and in shared memory for everyone. */
final class Tallies implements AutoCloseable {

  private final ConcurrentHashMap<Long, EpochTally> epochs = new ConcurrentHashMap<>();
  private final Counters counters = Counters.create(ReadCounter.names());

  EpochTally epoch(long epoch) {
    return epochs.computeIfAbsent(epoch, _ -> new EpochTally());
  }

  void add(ReadCounter counter, long amount) {
    counters.get(counter.ordinal()).add(amount);
  }

  long get(ReadCounter counter) {
    return counters.get(counter.ordinal()).get();
  }

  @Override
  public void close() {
    counters.close();
  }
}
