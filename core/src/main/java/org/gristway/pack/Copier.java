package org.gristway.pack;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.zip.CRC32C;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.chunk.Key;
import org.gristway.dataset.Workers;
import org.gristway.pack.ListedSample.ShapeBook;
import org.gristway.spool.RecordBuffer;
import org.gristway.spool.Spool;
import org.jspecify.annotations.Nullable;

/**
 * Copies every sample's bytes to its place, and notes their checksum there. Sources are read in
 * their own order, a stretch of neighbouring samples a thread at a time; since places were fixed
 * before, it does not matter who comes first.
 */
final class Copier {

  /** Small enough that threads end together, large enough that they seldom meet. */
  private static final int STRETCH = 64;

  private static final int BUFFER = 1 << 20;

  /** So many threads begin; the others join if reading turns out to be waiting. */
  private static final int EAGER = 2 * Runtime.getRuntime().availableProcessors();

  /** A small file from memory takes a tenth of this, one from a disk or a network more. */
  private static final long SLOW_NANOS = 200_000;

  /** So many slow files, more than fast ones, are no accident. */
  private static final int CONVINCING = 64;

  private final List<Source> sources;
  private final List<Spool> listings;
  private final ShapeBook book;
  private final Placement placement;
  private final ChunkFiles files;
  private final Troubles troubles;
  private final Progress progress;
  private final BooleanSupplier stopped;
  private final CountDownLatch moreThreads = new CountDownLatch(1);
  private final AtomicInteger begun = new AtomicInteger();
  private final AtomicInteger slowness = new AtomicInteger();
  private volatile boolean failed;

  // Guarded by this: where the next stretch begins.
  private int source;
  private Walk walk;

  Copier(
      List<Source> sources,
      List<Spool> listings,
      ShapeBook book,
      Placement placement,
      ChunkFiles files,
      Troubles troubles,
      Progress progress,
      BooleanSupplier stopped) {
    this.sources = sources;
    this.listings = listings;
    this.book = book;
    this.placement = placement;
    this.files = files;
    this.troubles = troubles;
    this.progress = progress;
    this.stopped = stopped;
    this.source = -1;
    this.walk = new Walk(Spool.emptyReader(), 0, 0);
  }

  /**
   * Samples that one thread copies, one after the other.
   *
   * @param source the number of the source they are from
   */
  private record Stretch(int source, Iterator<Item> items) {}

  /**
   * A sample to copy.
   *
   * @param listed its number among all that were listed
   * @param placed its number among those that are packed
   */
  private record Item(ListedSample sample, long listed, long placed) {}

  void run(int threads) {
    Workers.run(
        "copy",
        threads,
        () -> {
          try {
            if (begun.getAndIncrement() >= EAGER) {
              moreThreads.await();
            }
            try (Worker worker = new Worker()) {
              worker.run();
            }
          } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
          } catch (IOException broken) {
            failed = true;
            throw Failure.io("read the list of files", broken);
          } catch (RuntimeException broken) {
            failed = true; // the other threads need not go on
            throw broken;
          } finally {
            moreThreads.countDown(); // whoever still waits has nothing to do
          }
        });
  }

  private synchronized @Nullable Stretch next() throws IOException {
    while (!walk.hasNext()) {
      walk.reader.close();
      if (++source >= sources.size()) {
        source = sources.size();
        return null;
      }
      walk = new Walk(listings.get(source).read(), walk.listed, walk.placed);
      if (!sources.get(source).isSeekable()) {
        Walk whole = walk;
        walk = whole.behind(listings.get(source).count()); // before hasNext, which moves on
        if (whole.hasNext()) {
          return new Stretch(source, whole);
        }
      }
    }
    List<Item> items = new ArrayList<>(STRETCH);
    while (items.size() < STRETCH && walk.hasNext()) {
      items.add(walk.next());
    }
    return new Stretch(source, items.iterator());
  }

  private static int lessSlow(int slowness) {
    return Math.max(0, slowness - 1);
  }

  /** Goes through one source's listing, past the samples that are excluded. */
  private final class Walk implements Iterator<Item> {
    private final Spool.Reader reader;
    private long listed;
    private long placed;

    Walk(Spool.Reader reader, long listed, long placed) {
      this.reader = reader;
      this.listed = listed;
      this.placed = placed;
    }

    /** Where the next source begins: behind {@code count} samples from here. */
    Walk behind(long count) {
      long end = listed + count;
      long packed = placed;
      for (long i = listed; i < end; i++) {
        packed += troubles.isExcluded(i) ? 0 : 1;
      }
      return new Walk(Spool.emptyReader(), end, packed);
    }

    @Override
    public boolean hasNext() {
      while (reader.hasNext() && troubles.isExcluded(listed)) {
        record();
        listed++;
      }
      return reader.hasNext();
    }

    @Override
    public Item next() {
      return new Item(ListedSample.read(record(), book), listed++, placed++);
    }

    private RecordBuffer record() {
      try {
        return reader.next();
      } catch (IOException broken) {
        throw Failure.io("read the list of files", broken);
      }
    }
  }

  private final class Worker implements AutoCloseable {
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment buffer = arena.allocate(BUFFER, 4096);
    private final CRC32C checksum = new CRC32C();
    private int opened = -1;
    private Source.@Nullable Reader reader;

    void run() throws IOException {
      for (Stretch stretch = next(); stretch != null; stretch = next()) {
        while (stretch.items.hasNext()) {
          if (failed || stopped.getAsBoolean() || troubles.isFatal()) {
            return;
          }
          copy(stretch.source, stretch.items.next());
        }
        if (stretch.items instanceof Walk whole) {
          whole.reader.close();
        }
      }
    }

    private void copy(int from, Item item) throws IOException {
      try {
        long start = System.nanoTime();
        copyParts(open(from), item);
        if (item.sample.length() < BUFFER) {
          notice(System.nanoTime() - start > SLOW_NANOS);
        }
      } catch (IOException unreadable) {
        String name = sources.get(from).path() + "/" + Key.escape(item.sample.key());
        troubles.exclude(item.listed, name, Failure.reason(unreadable));
      }
    }

    /** More threads than processors help only while reads wait for storage. */
    private void notice(boolean slow) {
      if (moreThreads.getCount() > 0) {
        int sum = slow ? slowness.incrementAndGet() : slowness.updateAndGet(Copier::lessSlow);
        if (sum >= CONVINCING) {
          moreThreads.countDown();
        }
      }
    }

    private Source.Reader open(int from) throws IOException {
      Source.Reader current = reader;
      if (current == null || opened != from) {
        if (current != null) {
          current.close();
        }
        current = sources.get(from).open();
        reader = current;
        opened = from;
      }
      return current;
    }

    /** Parts are gathered in the buffer, so that a small sample is written in one go. */
    private void copyParts(Source.Reader from, Item item) throws IOException {
      int chunk = placement.chunk(item.placed);
      long offset = placement.offset(item.placed);
      int filled = 0;
      checksum.reset();
      for (int part = 0; part < item.sample.lengths().length; part++) {
        from.begin(item.sample, part);
        for (long left = item.sample.lengths()[part]; left > 0; ) {
          if (filled == BUFFER) {
            flush(chunk, filled, offset);
            offset += filled;
            filled = 0;
          }
          int count = from.read(buffer.asSlice(filled, Math.min(left, BUFFER - filled)));
          if (count == 0) {
            throw new Source.ChangedException();
          }
          filled += count;
          left -= count;
        }
        from.end();
      }
      flush(chunk, filled, offset);
      placement.setChecksum(item.placed, (int) checksum.getValue());
      progress.advance(item.sample.length());
    }

    private void flush(int chunk, int filled, long offset) {
      if (filled > 0) {
        checksum.update(buffer.asSlice(0, filled).asByteBuffer());
        files.write(chunk, buffer, filled, offset);
      }
    }

    @Override
    public void close() throws IOException {
      arena.close();
      if (reader != null) {
        reader.close();
      }
    }
  }
}
