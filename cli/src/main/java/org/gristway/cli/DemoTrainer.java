package org.gristway.cli;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.zip.CRC32C;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.snapshot.Snapshot;

/**
 * A pretend trainer: it takes a batch, spends a fixed time on it, and takes the next. In that time
 * it checks that it was given the right bytes, and no sample twice. What it waits beyond is what a
 * real trainer would stand still for.
 */
final class DemoTrainer {

  static final int BATCH_SIZE = 256;

  private final Snapshot snapshot;
  private final long stepNanos;
  private final Progress progress;

  /**
   * @param snapshot of the dataset that it is trained on
   * @param stepNanos what a full batch keeps it busy
   */
  DemoTrainer(Snapshot snapshot, long stepNanos, Progress progress) {
    this.snapshot = snapshot;
    this.stepNanos = stepNanos;
    this.progress = progress;
  }

  /**
   * Trains for an epoch, or as much of it as there is time for.
   *
   * @param feed opened here, so that what opening takes is part of the time
   */
  DemoRun train(String name, Supplier<DemoFeed> feed, long limitNanos) {
    int count = Math.toIntExact(snapshot.sampleCount());
    progress.begin(name, Progress.Unit.BYTES, snapshot.dataBytes());
    long[] order = new long[count];
    BitSet seen = new BitSet(count);
    List<DemoRun.Step> steps = new ArrayList<>();
    int delivered = 0;
    long bytes = 0;
    long stalled = 0;
    long start = System.nanoTime();
    long asked = start;
    try (DemoFeed opened = feed.get()) {
      while (delivered < count && asked - start < limitNanos) {
        DemoFeed.Samples batch = opened.next();
        long came = System.nanoTime();
        stalled += came - asked;
        long batchBytes = 0;
        for (int i = 0; i < batch.size(); i++) {
          batchBytes += check(batch.id(i), batch.bytes(i), seen);
          order[delivered++] = batch.id(i);
        }
        bytes += batchBytes;
        steps.add(new DemoRun.Step(came - start, delivered, stalled, opened.residentBytes()));
        progress.advance(batchBytes);
        asked = waitUntil(came + stepNanos * batch.size() / BATCH_SIZE);
      }
      return new DemoRun(
          name,
          bytes,
          asked - start,
          stalled,
          delivered == count,
          Arrays.copyOf(order, delivered),
          steps.toArray(DemoRun.Step[]::new),
          opened.cost());
    } finally {
      progress.end();
    }
  }

  /** Throws unless a sample has its own bytes and has not been here before; their number. */
  private long check(long id, ByteBuffer bytes, BitSet seen) {
    if (seen.get((int) id)) {
      throw new IllegalStateException("sample " + id + " was delivered twice");
    }
    seen.set((int) id);
    long length = bytes.remaining();
    CRC32C checksum = new CRC32C();
    checksum.update(bytes);
    if (length != snapshot.length(id) || (int) checksum.getValue() != snapshot.checksum(id)) {
      throw Failure.damaged("'%s' came with other bytes than it was packed with", snapshot.key(id));
    }
    return length;
  }

  /** Returns the time then. */
  private static long waitUntil(long time) {
    long now = System.nanoTime();
    while (now - time < 0) {
      LockSupport.parkNanos(time - now);
      now = System.nanoTime();
    }
    return now;
  }
}
