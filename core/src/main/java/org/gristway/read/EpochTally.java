package org.gristway.read;

import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;

/** What one epoch has read and delivered, counted by all threads. */
final class EpochTally {

  final LongAdder samples = new LongAdder();
  final LongAdder bytes = new LongAdder();
  final LongAdder storageReads = new LongAdder();
  final LongAdder storageBytes = new LongAdder();
  final LongAdder rereadBytes = new LongAdder();
  final LongAdder fetched = new LongAdder();
  final LongAdder fetchedBytes = new LongAdder();
  final LongAdder fallBacks = new LongAdder();
  final LongAdder redirected = new LongAdder();
  final LongAdder repeated = new LongAdder();
  final LongAdder damaged = new LongAdder();
  final LongAdder stallNanos = new LongAdder();
  final LongAccumulator peakResident = new LongAccumulator(Math::max, 0);

  EpochReport report(long epoch) {
    return new EpochReport(
        epoch,
        samples.sum(),
        bytes.sum(),
        storageReads.sum(),
        storageBytes.sum(),
        rereadBytes.sum(),
        fetched.sum(),
        fetchedBytes.sum(),
        fallBacks.sum(),
        peakResident.get(),
        redirected.sum(),
        repeated.sum(),
        damaged.sum(),
        stallNanos.sum());
  }
}
