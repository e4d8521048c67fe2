package org.gristway.read;

import java.util.concurrent.ConcurrentHashMap;
import org.gristway.counters.Counters;

/** All counting of a loader: by epoch for its reports, and in shared memory for everyone. */
final class Tallies implements AutoCloseable {

  /** Epochs that can still be asked about; a run may have any number. */
  private static final int KEPT = 16;

  private final ConcurrentHashMap<Long, EpochTally> epochs = new ConcurrentHashMap<>();
  private final Counters counters = Counters.create(ReadCounter.names());

  EpochTally epoch(long epoch) {
    EpochTally known = epochs.get(epoch);
    return known != null ? known : begin(epoch);
  }

  private EpochTally begin(long epoch) {
    epochs.keySet().removeIf(old -> old < epoch - KEPT);
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
