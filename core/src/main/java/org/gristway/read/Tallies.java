package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.ConcurrentHashMap;
import org.gristway.counters.Counters;
import org.gristway.handover.BatchLayout;

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

  /** Counts a batch that a trainer has received, after waiting for it. */
  void count(MemorySegment area, long epoch, long waited) {
    int places = BatchLayout.places(area);
    long samples = 0;
    long bytes = 0;
    long redirected = 0;
    long damaged = 0;
    for (int i = 0; i < places; i++) {
      int flags = BatchLayout.flags(area, i);
      if ((flags & BatchLayout.REPEAT) == 0) {
        samples++;
        bytes += BatchLayout.length(area, i);
        redirected += BatchLayout.sample(area, i) == BatchLayout.request(area, i) ? 0 : 1;
      }
      damaged += (flags & BatchLayout.DAMAGED) != 0 ? 1 : 0;
    }
    EpochTally tally = epoch(epoch);
    tally.samples.add(samples);
    tally.bytes.add(bytes);
    tally.redirected.add(redirected);
    tally.repeated.add(places - samples);
    tally.damaged.add(damaged);
    tally.stallNanos.add(waited);
    add(ReadCounter.BATCHES, 1);
    add(ReadCounter.SAMPLES, samples);
    add(ReadCounter.BYTES, bytes);
    add(ReadCounter.REDIRECTED, redirected);
    add(ReadCounter.REPEATED, places - samples);
    add(ReadCounter.DAMAGED, damaged);
    add(ReadCounter.STALL_NANOS, waited);
  }

  /** Counts a read from the storage; again, if its bytes were read in the epoch before. */
  void countRead(long epoch, long bytes, boolean again) {
    EpochTally tally = epoch(epoch);
    tally.storageReads.increment();
    tally.storageBytes.add(bytes);
    add(ReadCounter.STORAGE_READS, 1);
    add(ReadCounter.STORAGE_BYTES, bytes);
    if (again) {
      tally.rereadBytes.add(bytes);
      add(ReadCounter.REREAD_BYTES, bytes);
    }
  }

  /** Counts what came from a cache. */
  void countFetched(long epoch, long bytes) {
    EpochTally tally = epoch(epoch);
    tally.fetched.increment();
    tally.fetchedBytes.add(bytes);
    add(ReadCounter.FETCHED, 1);
    add(ReadCounter.FETCHED_BYTES, bytes);
  }

  /** Counts what should have come from a cache, and was not there. */
  void countFallBack(long epoch) {
    epoch(epoch).fallBacks.increment();
    add(ReadCounter.FALL_BACKS, 1);
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
