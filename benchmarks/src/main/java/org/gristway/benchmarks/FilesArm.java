package org.gristway.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.dataset.Workers;
import org.gristway.os.NativeFile;

/**
 * Reads the original files in shuffled order with some threads, as plain loaders do: open, read
 * all, close. Their names are known before the clock starts.
 */
final class FilesArm {

  private FilesArm() {}

  /**
   * @param arguments a list of files, threads, seconds at most
   */
  static void main(String[] arguments) throws IOException {
    List<String> files = new ArrayList<>(Files.readAllLines(Path.of(arguments[0])));
    Collections.shuffle(files, new Random(1));
    int threads = Integer.parseInt(arguments[1]);
    double most = Double.parseDouble(arguments[2]);
    AtomicInteger next = new AtomicInteger();
    AtomicInteger samples = new AtomicInteger();
    AtomicLong bytes = new AtomicLong();
    long start = System.nanoTime();
    Workers.run(
        "files",
        threads,
        () -> {
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(1 << 20);
            for (int i = next.getAndIncrement();
                i < files.size() && System.nanoTime() - start < most * 1e9;
                i = next.getAndIncrement()) {
              bytes.addAndGet(read(Path.of(files.get(i)), memory));
              samples.incrementAndGet();
            }
          }
        });
    System.out.printf(
        Locale.ROOT,
        "samples=%d bytes=%d seconds=%.6f cpu=0 stall=0 heap=0 storage=%d%n",
        samples.get(),
        bytes.get(),
        (System.nanoTime() - start) / 1e9,
        bytes.get());
  }

  private static long read(Path path, MemorySegment memory) {
    try (NativeFile file = NativeFile.openToRead(path)) {
      return file.read(memory, memory.byteSize(), 0);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }
}
