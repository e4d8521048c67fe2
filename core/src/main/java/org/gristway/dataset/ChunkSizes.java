package org.gristway.dataset;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gristway.Failure;
import org.gristway.chunk.ChunkFormat;
import org.gristway.os.Posix;
import org.gristway.os.PosixException;
import org.gristway.snapshot.Snapshot;

/**
 * A look at the sizes of a dataset's chunk files, before a run reads them: a copy that was
 * interrupted is told at once, and not by the epoch that gets there.
 */
final class ChunkSizes {

  private static final long MISSING = -1;

  /** Files that a thread looks at, at least: a few are looked at without any. */
  private static final int OF_A_THREAD = 256;

  /** A look over a network takes its time, in which others can be under way. */
  private static final int MOST_THREADS = 32;

  /** Chunks that are named; of more, there is a number. */
  private static final int NAMED = 3;

  private ChunkSizes() {}

  /**
   * Refuses a folder whose chunks are not all there and as long as they were written.
   *
   * @throws Failure (damaged) that names them
   */
  static void check(DatasetFolder folder, Snapshot snapshot, Optional<Portion> portion) {
    int[] chunks =
        portion
            .map(node -> node.chunks(snapshot))
            .orElseGet(() -> IntStream.range(0, snapshot.chunkCount()))
            .toArray();
    long[] sizes = sizes(folder, chunks);
    List<Integer> missing = new ArrayList<>();
    List<Integer> odd = new ArrayList<>();
    long samples = 0;
    for (int i = 0; i < chunks.length; i++) {
      if (sizes[i] != snapshot.chunkFileBytes(chunks[i])) {
        (sizes[i] == MISSING ? missing : odd).add(chunks[i]);
        samples += snapshot.firstSample(chunks[i] + 1) - snapshot.firstSample(chunks[i]);
      }
    }
    if (samples > 0 || !missing.isEmpty() || !odd.isEmpty()) {
      List<String> faults = new ArrayList<>();
      add(faults, missing, chunks.length, "missing");
      add(faults, odd, chunks.length, "cut off, or not of this dataset");
      throw Failure.damaged(
          "%s: %s, %s; bring %s back from a copy, or %s again",
          folder.path(),
          String.join("; ", faults),
          counted(samples, "sample"),
          missing.size() + odd.size() == 1 ? "it" : "them",
          portion.isPresent() ? "place" : "pack");
    }
  }

  private static void add(List<String> faults, List<Integer> chunks, int of, String what) {
    if (!chunks.isEmpty()) {
      String names =
          chunks.stream().limit(NAMED).map(ChunkFormat::fileName).collect(Collectors.joining(", "));
      int more = chunks.size() - NAMED;
      faults.add(
          String.format(
              Locale.ROOT,
              "%,d of %s %s %s: %s%s",
              chunks.size(),
              counted(of, "chunk"),
              chunks.size() == 1 ? "is" : "are",
              what,
              names,
              more > 0 ? String.format(Locale.ROOT, " and %,d more", more) : ""));
    }
  }

  private static String counted(long count, String noun) {
    return String.format(Locale.ROOT, "%,d %s%s", count, noun, count == 1 ? "" : "s");
  }

  private static long[] sizes(DatasetFolder folder, int[] chunks) {
    long[] sizes = new long[chunks.length];
    int threads = Math.min(MOST_THREADS, chunks.length / OF_A_THREAD);
    AtomicInteger next = new AtomicInteger();
    Runnable look =
        () -> {
          for (int i = next.getAndIncrement(); i < sizes.length; i = next.getAndIncrement()) {
            sizes[i] = size(folder.chunk(chunks[i]));
          }
        };
    if (threads < 2) {
      look.run();
    } else {
      Workers.run("sizes", threads, look);
    }
    return sizes;
  }

  private static long size(Path chunk) {
    try {
      return Posix.status(chunk.toString().getBytes(StandardCharsets.UTF_8), true).size();
    } catch (PosixException failed) {
      if (failed.number() == PosixException.ENOENT) {
        return MISSING;
      }
      throw Failure.io("look at " + chunk, failed);
    }
  }
}
