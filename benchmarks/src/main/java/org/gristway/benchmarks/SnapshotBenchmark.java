package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import org.gristway.chunk.DatasetId;
import org.gristway.chunk.SampleEntry;
import org.gristway.chunk.Shape;
import org.gristway.snapshot.Snapshot;
import org.gristway.snapshot.SnapshotWriter;

/**
 * A snapshot of ten million samples: its size, how soon after opening it answers, how many random
 * keys a second it finds on one core and on two, and what it costs in heap.
 */
final class SnapshotBenchmark implements Main.Benchmark {

  private static final long SAMPLES = 10_000_000;
  private static final int LOOKUPS = 4_000_000;

  @Override
  public void run(Path folder, int rounds) throws IOException, InterruptedException {
    Path path = write(folder);
    long keys = SAMPLES * key(0).length;
    System.out.printf(
        Locale.ROOT,
        "size: %,d bytes, %.2f bytes a sample beside its key of %d bytes%n",
        Files.size(path),
        (Files.size(path) - keys) / (double) SAMPLES,
        key(0).length);
    measureOpening(path, rounds);
    measureLookups(path, rounds);
  }

  private static byte[] key(long sample) {
    return String.format(Locale.ROOT, "n%05d/image_%08d.jpg", sample / 1_000, sample)
        .getBytes(StandardCharsets.US_ASCII);
  }

  /** Writes digits into a copy of a key: formatting ten million of them would take longer. */
  private static byte[] fastKey(byte[] model, long sample) {
    byte[] key = model.clone();
    putDigits(key, 6, sample / 1_000);
    putDigits(key, 21, sample);
    return key;
  }

  private static void putDigits(byte[] key, int end, long value) {
    for (int at = end - 1; value > 0; at--) {
      key[at] = (byte) ('0' + value % 10);
      value /= 10;
    }
  }

  static Path write(Path folder) throws IOException {
    byte[] model = key(0);
    DatasetId id = new DatasetId(1, 2);
    long perChunk = 10_000;
    try (SnapshotWriter writer =
        new SnapshotWriter(
            folder, folder, 1, id, SAMPLES, SAMPLES / perChunk, SAMPLES * model.length)) {
      for (long sample = 0; sample < SAMPLES; sample++) {
        if (sample % perChunk == 0) {
          writer.addChunk(4096, 4096 + perChunk * 6_000 + 24, 1, 0);
        }
        writer.add(
            new SampleEntry(
                fastKey(model, sample),
                Shape.PLAIN,
                new long[] {6_000},
                (int) (sample / 1_000),
                true,
                0));
      }
      writer.index();
      writer.finish();
      return writer.path();
    }
  }

  /** In a process of its own each time: opening is the first thing a job does. */
  private static void measureOpening(Path path, int rounds)
      throws IOException, InterruptedException {
    for (boolean cold : new boolean[] {false, true}) {
      List<Double> times = new ArrayList<>();
      for (int round = 0; round < rounds; round++) {
        if (cold) {
          Machine.dropCaches();
        }
        String output =
            Machine.run(
                ProcessHandle.current().info().command().orElseThrow(),
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                Main.class.getName(),
                "open-snapshot",
                path.toString());
        times.add(Double.parseDouble(output.strip()));
      }
      System.out.printf(
          Locale.ROOT,
          "open and first lookup, %s page cache, in a new process: %.1f ms  %s%n",
          cold ? "cold" : "warm",
          Machine.median(times),
          Machine.spread(times, "%.1f"));
    }
  }

  /** Prints the milliseconds from before opening until the first key is found. */
  static void openAndLookUp(Path path) {
    byte[] key = key(SAMPLES / 3);
    long start = System.nanoTime();
    try (Snapshot snapshot = Snapshot.open(path)) {
      long found = snapshot.find(key);
      double time = (System.nanoTime() - start) / 1e6;
      if (found != SAMPLES / 3) {
        throw new IllegalStateException("found " + found);
      }
      System.out.println(time);
    }
  }

  private static void measureLookups(Path path, int rounds) throws InterruptedException {
    List<Double> one = new ArrayList<>();
    List<Double> two = new ArrayList<>();
    try (Snapshot snapshot = Snapshot.open(path)) {
      byte[][][] keys = {randomKeys(1), randomKeys(2)};
      lookUp(snapshot, keys[0]); // compiled, and every block touched and checked
      lookUp(snapshot, keys[1]);
      long before = usedHeap();
      for (int round = 0; round < rounds; round++) {
        one.add(rate(snapshot, keys, 1));
        two.add(rate(snapshot, keys, 2));
      }
      System.out.printf(
          Locale.ROOT,
          "lookups of random keys: %.2f M/s on one core, %.2f M/s on two, ratio %.2f%n",
          Machine.median(one),
          Machine.median(two),
          Machine.median(two) / Machine.median(one));
      System.out.println(
          "  one " + Machine.spread(one, "%.2f") + ", two " + Machine.spread(two, "%.2f"));
      System.out.printf(
          Locale.ROOT,
          "heap held by it after %,d lookups: %,d bytes more than before%n",
          3L * rounds * LOOKUPS,
          Math.max(0, usedHeap() - before));
    }
  }

  private static byte[][] randomKeys(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    byte[] model = key(0);
    byte[][] keys = new byte[LOOKUPS / 2][];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = fastKey(model, random.nextLong(SAMPLES));
    }
    return keys;
  }

  /** Millions of lookups a second by so many threads together. */
  private static double rate(Snapshot snapshot, byte[][][] keys, int threads)
      throws InterruptedException {
    CountDownLatch ready = new CountDownLatch(threads + 1);
    List<Thread> workers = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      byte[][] own = keys[i];
      workers.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    ready.countDown();
                    try {
                      ready.await();
                    } catch (InterruptedException stop) {
                      return;
                    }
                    lookUp(snapshot, own);
                    lookUp(snapshot, own);
                  }));
    }
    ready.countDown();
    ready.await();
    long start = System.nanoTime();
    for (Thread worker : workers) {
      worker.join();
    }
    return (double) threads * LOOKUPS / ((System.nanoTime() - start) / 1e3);
  }

  private static void lookUp(Snapshot snapshot, byte[][] keys) {
    long missing = 0;
    for (byte[] key : keys) {
      missing += snapshot.find(key) < 0 ? 1 : 0;
    }
    if (missing > 0) {
      throw new IllegalStateException(missing + " keys were not found");
    }
  }

  private static long usedHeap() {
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }
}
