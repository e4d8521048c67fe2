package org.gristway.cli;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.dataset.Workers;
import org.gristway.os.NativeFile;
import org.gristway.os.PrivateMemory;
import org.jspecify.annotations.Nullable;

/** Measures storage and memory. Each measurement is bounded in time, and the space it takes. */
final class Probe {

  static final long SMALL_BYTES = 10_000;

  static final long MOST_BYTES = 1 << 30;
  static final long LEAST_BYTES = 16 << 20;

  private static final int SPACE_SHARE = 10; // of what is free
  private static final long BLOCK = 4 << 20;
  private static final long LARGEST = 4 << 20;

  /**
   * The largest first: what a limit of bytes has saved up during small reads is used up at once by
   * large ones, and only slowly by those that it hardly holds back.
   */
  private static final long[] SIZES = {LARGEST, 1 << 20, 256 << 10, 64 << 10, 16 << 10, 4 << 10};

  private static final int MOST_AT_ONCE = 16;
  private static final int[] AT_ONCE = {1, 4, MOST_AT_ONCE};

  /** So many are asked for as often: a thread that is done has another to do. */
  private static final int WAITING = 2;

  static final int SMALL_FILES = 1000;

  private static final long WRITE_NANOS = 12_000_000_000L;
  private static final long READ_NANOS = 700_000_000L;
  private static final long SMALL_NANOS = 3_000_000_000L; // to write them, and again to read them

  /** Storage that is limited lets pass what it has saved up: that is not its rate. */
  private static final long SAVED_UP_NANOS = 300_000_000L;

  private final ProbeFolder folder;
  private final Progress progress;
  private final double patience;

  Probe(ProbeFolder folder, Progress progress) {
    this(folder, progress, 1);
  }

  /**
   * @param patience the part of its usual time that measuring takes: with less, it is less exact
   */
  Probe(ProbeFolder folder, Progress progress, double patience) {
    this.folder = folder;
    this.progress = progress;
    this.patience = patience;
  }

  private long patient(long nanos) {
    return (long) (patience * nanos);
  }

  ProbeResult run() {
    try {
      return measure();
    } catch (IOException failed) {
      throw Failure.io("probe " + folder.file(""), failed);
    } catch (UncheckedIOException failed) {
      throw Failure.io("probe " + folder.file(""), Objects.requireNonNull(failed.getCause()));
    }
  }

  private ProbeResult measure() throws IOException {
    Path path = folder.file("file");
    long bytes = write(path);
    progress.begin("reading", Progress.Unit.BYTES, 0);
    List<ProbeResult.Reads> reads = new ArrayList<>();
    boolean isDirect;
    // Such memory as a loader reads into: the disk gets fewer requests than with small pages.
    try (NativeFile direct = openDirect(path);
        PrivateMemory memory = new PrivateMemory(WAITING * MOST_AT_ONCE * LARGEST)) {
      memory.segment().fill((byte) 0);
      isDirect = direct.isDirect();
      for (int atOnce : AT_ONCE) {
        for (long size : SIZES) {
          reads.add(read(direct, bytes, memory.segment(), size, atOnce));
        }
      }
    }
    double buffered;
    double cached;
    try (NativeFile file = NativeFile.openToRead(path)) {
      file.forget();
      buffered = readThrough(file, bytes);
      readThrough(file, bytes);
      cached = readThrough(file, bytes);
    }
    Files.delete(path);
    progress.begin("small files", Progress.Unit.SAMPLES, 2 * SMALL_FILES);
    double small = smallFiles();
    DeliveryProbe delivery = new DeliveryProbe(folder, patience);
    return new ProbeResult(
        bytes,
        isDirect,
        reads,
        buffered,
        cached,
        small,
        delivery.copyRate(false),
        delivery.copyRate(true),
        delivery.sampleSeconds(),
        Runtime.getRuntime().availableProcessors());
  }

  private static NativeFile openDirect(Path path) throws IOException {
    try {
      return NativeFile.openDirect(path);
    } catch (IOException refused) {
      return NativeFile.openToRead(path); // some file systems know no direct reads
    }
  }

  /** Writes a file of random bytes, as large as space and time allow; how large. */
  private long write(Path path) throws IOException {
    long space = Files.getFileStore(folder.file("")).getUsableSpace() / SPACE_SHARE;
    long most = Math.min(MOST_BYTES, space) / BLOCK * BLOCK;
    if (most < LEAST_BYTES) {
      throw Failure.environment(
          "too little space is free to measure: a probe takes a tenth of it, and %d bytes at least",
          LEAST_BYTES);
    }
    progress.begin("writing a file", Progress.Unit.BYTES, most);
    long end = System.nanoTime() + patient(WRITE_NANOS);
    long written = 0;
    try (Arena arena = Arena.ofConfined();
        NativeFile file = NativeFile.create(path)) {
      MemorySegment block = arena.allocate(BLOCK, NativeFile.DIRECT_ALIGNMENT);
      SplittableRandom random = new SplittableRandom(1);
      while (written < most && (written < LEAST_BYTES || System.nanoTime() < end)) {
        for (long i = 0; i < BLOCK; i += 8) {
          block.set(ValueLayout.JAVA_LONG, i, random.nextLong());
        }
        file.write(block, BLOCK, written);
        written += BLOCK;
        if (written % (16 * BLOCK) == 0) {
          file.sync(); // or the page cache takes it all, and the time is up when it is written
        }
        progress.advance(BLOCK);
      }
      file.sync();
    }
    return written;
  }

  /**
   * Reads of one size at random places, some at once. One thread asks for them and takes them up in
   * that order, as a lane does: on fast storage waking others takes a good part of the time. What
   * is done while they begin and end does not count.
   */
  private ProbeResult.Reads read(
      NativeFile file, long fileBytes, MemorySegment memory, long size, int atOnce)
      throws IOException {
    SplittableRandom random = new SplittableRandom(atOnce);
    ArrayDeque<Future<?>> asked = new ArrayDeque<>();
    LongAdder done = new LongAdder();
    int begun = 0;
    Moment from = Moment.of(done);
    Moment to = from;
    long end = from.nanos() + patient(SAVED_UP_NANOS);
    boolean counts = false;
    try (ExecutorService threads = Executors.newFixedThreadPool(atOnce)) {
      while (!counts || to.reads() == from.reads()) {
        if (asked.size() < WAITING * atOnce) {
          MemorySegment target = memory.asSlice(begun++ % (WAITING * atOnce) * LARGEST, size);
          long offset = random.nextLong(fileBytes / size) * size;
          Callable<@Nullable Void> reading =
              () -> {
                file.readFully(target, size, offset);
                done.increment();
                return null;
              };
          asked.add(threads.submit(reading));
        } else {
          asked.remove().get();
        }
        if (System.nanoTime() >= end) {
          to = Moment.of(done);
          if (!counts) {
            counts = true;
            from = to;
            end = from.nanos() + patient(READ_NANOS);
          }
        }
      }
      while (!asked.isEmpty()) {
        asked.remove().get();
      }
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof IOException io) {
        throw io;
      }
      throw new IllegalStateException(failed);
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("the probe is interrupted");
    }
    progress.advance(begun * size);
    double seconds = (to.nanos() - from.nanos()) / 1e9;
    double busy = to.processors().minus(from.processors()).toNanos() / 1e9 / seconds;
    return new ProbeResult.Reads(size, atOnce, (to.reads() - from.reads()) * size / seconds, busy);
  }

  /** How far reading was, and what it had taken. */
  private record Moment(long nanos, long reads, Duration processors) {

    static Moment of(LongAdder done) {
      return new Moment(System.nanoTime(), done.sum(), processorTime());
    }
  }

  /** What this process has taken of the processors so far. */
  private static Duration processorTime() {
    return ProcessHandle.current().info().totalCpuDuration().orElse(Duration.ZERO);
  }

  /** Bytes a second of reading a file from its start, as far as the time lasts. */
  private double readThrough(NativeFile file, long fileBytes) throws IOException {
    long start = System.nanoTime();
    long done = 0;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(BLOCK, NativeFile.DIRECT_ALIGNMENT);
      while (done < fileBytes && System.nanoTime() - start < patient(2 * READ_NANOS)) {
        file.readFully(target, BLOCK, done);
        done += BLOCK;
      }
    }
    progress.advance(done);
    return done / seconds(start);
  }

  /** Small files a second: opened, read and closed, several at once, with none of them cached. */
  private double smallFiles() throws IOException {
    int files = writeSmallFiles();
    AtomicInteger next = new AtomicInteger();
    AtomicInteger read = new AtomicInteger();
    long start = System.nanoTime();
    long end = start + patient(SMALL_NANOS);
    Workers.run(
        "probe",
        MOST_AT_ONCE,
        () -> {
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment target = arena.allocate(SMALL_BYTES);
            for (int i = next.getAndIncrement();
                i < files && isInTime(i, end);
                i = next.getAndIncrement()) {
              try (NativeFile file = NativeFile.openToRead(folder.file("small-" + i))) {
                file.readFully(target, SMALL_BYTES, 0);
              }
              read.incrementAndGet();
              progress.advance(1);
            }
          } catch (IOException failed) {
            throw new UncheckedIOException(failed);
          }
        });
    return read.get() / seconds(start);
  }

  /** Writes as many as the time allows; how many. */
  private int writeSmallFiles() throws IOException {
    long end = System.nanoTime() + patient(SMALL_NANOS);
    int written = 0;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(SMALL_BYTES);
      while (written < SMALL_FILES && isInTime(written, end)) {
        try (NativeFile file = NativeFile.create(folder.file("small-" + written))) {
          file.write(bytes, SMALL_BYTES, 0);
          file.sync();
          file.forget();
        }
        written++;
        progress.advance(1);
      }
    }
    return written;
  }

  /** True for as many small files as are read at once, however long they take. */
  private static boolean isInTime(int smallFile, long end) {
    return smallFile < MOST_AT_ONCE || System.nanoTime() < end;
  }

  private static double seconds(long start) {
    return (System.nanoTime() - start) / 1e9;
  }
}
