package org.gristway.cli;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import org.gristway.Failure;
import org.gristway.snapshot.Snapshot;

/**
 * A plain loader: one thread that reads the files one by one in random order, a few batches ahead
 * of the trainer.
 */
final class DemoFileFeed implements DemoFeed {

  /** As in the handover: these, one being made and one with the trainer. */
  private static final int BATCHES_READY = 2;

  /** What goes through the queue: a batch, or why there is none. */
  private sealed interface Made {}

  private record FileBatch(long[] ids, byte[][] files) implements Made, Samples {
    @Override
    public int size() {
      return ids.length;
    }

    @Override
    public long id(int place) {
      return ids[place];
    }

    @Override
    public ByteBuffer bytes(int place) {
      return ByteBuffer.wrap(files[place]);
    }
  }

  private record Failed(RuntimeException why) implements Made {}

  private final Path folder;
  private final Snapshot snapshot;
  private final LongUnaryOperator order;
  private final int batchSize;
  private final BlockingQueue<Made> queue = new ArrayBlockingQueue<>(BATCHES_READY);
  private final AtomicLong files = new AtomicLong();
  private final AtomicLong fileBytes = new AtomicLong();
  private final Thread reader;

  /**
   * @param folder of the files
   * @param snapshot of their dataset
   * @param order which sample comes at a position of the epoch
   */
  DemoFileFeed(Path folder, Snapshot snapshot, LongUnaryOperator order, int batchSize) {
    this.folder = folder;
    this.snapshot = snapshot;
    this.order = order;
    this.batchSize = batchSize;
    this.reader = Thread.ofPlatform().name("gristway-demo-files").daemon().start(this::readAll);
  }

  private void readAll() {
    try {
      long count = snapshot.sampleCount();
      for (long start = 0; start < count; start += batchSize) {
        queue.put(read(start, (int) Math.min(batchSize, count - start)));
      }
    } catch (InterruptedException closed) {
      // Nobody waits for the rest.
    } catch (RuntimeException why) {
      fail(why);
    }
  }

  private void fail(RuntimeException why) {
    try {
      queue.put(new Failed(why));
    } catch (InterruptedException closed) {
      // Nobody wants to know.
    }
  }

  private FileBatch read(long start, int size) {
    long[] ids = new long[size];
    byte[][] contents = new byte[size][];
    for (int i = 0; i < size; i++) {
      ids[i] = order.applyAsLong(start + i);
      Path file = folder.resolve(snapshot.key(ids[i]));
      try {
        contents[i] = Files.readAllBytes(file);
      } catch (IOException failed) {
        throw Failure.io("read " + file, failed);
      }
      files.incrementAndGet();
      fileBytes.addAndGet(contents[i].length);
    }
    return new FileBatch(ids, contents);
  }

  @Override
  public Samples next() {
    try {
      return switch (queue.take()) {
        case FileBatch batch -> batch;
        case Failed failed -> throw failed.why();
      };
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      throw Failure.environment("interrupted while waiting for files");
    }
  }

  @Override
  public long residentBytes() {
    return 0;
  }

  @Override
  public Cost cost() {
    return new Cost(files.get(), fileBytes.get(), 0);
  }

  @Override
  public void close() {
    reader.interrupt();
    boolean interrupted = false;
    while (reader.isAlive()) {
      try {
        reader.join();
      } catch (InterruptedException later) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
