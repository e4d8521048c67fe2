package org.gristway.dataset;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.chunk.ChunkTable;
import org.gristway.chunk.FolderChunkStore;
import org.gristway.os.NativeFile;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * Reads every byte of a dataset, from the disk where the page cache lets go of it, and holds it
 * against its checksums: chunks by their own tables, snapshots by theirs, and each against the
 * other. Finds all damage, not only the first.
 */
public final class Verifier {

  /**
   * What was found.
   *
   * @param chunks that were read
   * @param samples whose bytes were checked
   * @param bytes of their data
   * @param faults one line each: file, sample where it is one, and what is wrong
   */
  public record Report(long chunks, long samples, long bytes, List<String> faults) {}

  private static final int THREADS = 8;
  private static final int PIECE = 4 << 20;

  /** So many damaged samples of a chunk are named; a whole disk of zeros fits in memory then. */
  private static final int NAMED = 1_000;

  private final DatasetFolder folder;
  private final Progress progress;
  private final ConcurrentLinkedQueue<String> faults = new ConcurrentLinkedQueue<>();
  private final AtomicLong samples = new AtomicLong();
  private final AtomicLong bytes = new AtomicLong();

  private Verifier(DatasetFolder folder, Progress progress) {
    this.folder = folder;
    this.progress = progress;
  }

  /** Verifies the dataset in a folder. Damage is reported, not thrown. */
  public static Report verify(Path path, Progress progress) {
    return new Verifier(DatasetFolder.at(path), progress).run();
  }

  private Report run() {
    List<Snapshot> sound = verifySnapshots();
    try {
      Snapshot newest = sound.isEmpty() ? null : sound.getLast();
      SortedSet<Integer> chunks = chunks(newest);
      List<Task> reading = new ArrayList<>();
      for (int chunk : chunks) {
        reading.add(buffer -> verifyChunk(chunk, newest, buffer));
      }
      List<Task> checking = new ArrayList<>();
      if (newest == null && !folder.isPortion()) {
        checking.add(_ -> ChunkList.read(folder));
      }
      for (Snapshot snapshot : sound) {
        checking.add(_ -> compare(snapshot, sound.getLast()));
        checking.addAll(verifications(snapshot));
      }
      progress.begin("verifying", Progress.Unit.BYTES, totalBytes(chunks));
      verifyAll(alternating(reading, checking));
      progress.end();
      List<String> sorted = new ArrayList<>(faults);
      sorted.sort(null);
      return new Report(chunks.size(), samples.get(), bytes.get(), List.copyOf(sorted));
    } finally {
      sound.forEach(Snapshot::close);
    }
  }

  /** All that the newest sound snapshot names, and all others that are there. */
  private SortedSet<Integer> chunks(@Nullable Snapshot newest) {
    SortedSet<Integer> chunks = new TreeSet<>(folder.chunkNumbers());
    if (newest != null) {
      SortedSet<Integer> behind = chunks.tailSet(newest.chunkCount());
      if (folder.isAppending()) {
        behind.clear(); // not published yet
      } else if (!behind.isEmpty() && newest.version() == folder.versions().last()) {
        note(folder.unnamed(behind.first()));
      }
      expected(newest).forEach(chunks::add);
    }
    return chunks;
  }

  /** The chunks that a snapshot names and that should be here: all, or those of one node. */
  private IntStream expected(Snapshot newest) {
    Optional<Portion> portion;
    try {
      portion = folder.portion();
    } catch (Failure damaged) {
      note(damaged);
      return IntStream.empty(); // nobody knows
    }
    if (portion.isEmpty()) {
      return IntStream.range(0, newest.chunkCount());
    }
    if (!portion.get().snapshot().equals(newest.id())
        && newest.version() == folder.versions().last()) {
      faults.add(folder.path() + " says that it holds chunks of another dataset; place it again");
    }
    return portion.get().chunks(newest);
  }

  /** Some threads check while others wait for the disk. */
  private static List<Task> alternating(List<Task> reading, List<Task> checking) {
    List<Task> tasks = new ArrayList<>();
    for (int i = 0; i < Math.max(reading.size(), checking.size()); i++) {
      tasks.addAll(reading.subList(Math.min(i, reading.size()), Math.min(i + 1, reading.size())));
      tasks.addAll(
          checking.subList(Math.min(i, checking.size()), Math.min(i + 1, checking.size())));
    }
    return tasks;
  }

  /** The records of a snapshot, a chunk's worth at a time. */
  private static List<Task> verifications(Snapshot snapshot) {
    List<Task> tasks = new ArrayList<>();
    for (int chunk = 0; chunk < snapshot.chunkCount(); chunk++) {
      long from = snapshot.firstSample(chunk);
      long to = snapshot.firstSample(chunk + 1);
      tasks.add(_ -> snapshot.verifySamples(from, to));
    }
    return tasks;
  }

  /** A version holds all chunks of the versions before it. */
  private void compare(Snapshot older, Snapshot newest) {
    boolean fits =
        older.datasetId().equals(newest.datasetId()) && older.chunkCount() <= newest.chunkCount();
    for (int chunk = 0; fits && chunk < older.chunkCount(); chunk++) {
      fits = older.chunkHeaderChecksum(chunk) == newest.chunkHeaderChecksum(chunk);
    }
    if (!fits) {
      throw Failure.damaged(
          "%s belongs to another dataset than %s; 'gristway rebuild' makes it anew",
          folder.snapshot(older.version()), folder.snapshot(newest.version()));
    }
  }

  private long totalBytes(SortedSet<Integer> chunks) {
    long total = 0;
    for (int chunk : chunks) {
      Path path = folder.chunk(chunk);
      try {
        total += Files.exists(path) ? Files.size(path) : 0;
      } catch (IOException failed) {
        faults.add(String.valueOf(Failure.io("look at " + path, failed).getMessage()));
      }
    }
    return total;
  }

  /** Returns the snapshots that are sound in themselves, oldest first. */
  private List<Snapshot> verifySnapshots() {
    List<Snapshot> sound = new ArrayList<>();
    SortedSet<Integer> versions = folder.versions();
    if (versions.isEmpty()) {
      faults.add(folder.path() + " has no snapshot; 'gristway rebuild' makes it anew");
    }
    for (int version = 1; !versions.isEmpty() && version <= versions.last(); version++) {
      Path path = folder.snapshot(version);
      if (!versions.contains(version)) {
        faults.add(path + " is missing; 'gristway rebuild' makes it anew");
        continue;
      }
      progress.begin("verifying " + path.getFileName(), Progress.Unit.BYTES, 0);
      Snapshot snapshot = openSound(path, version);
      if (snapshot != null) {
        sound.add(snapshot);
      }
    }
    return sound;
  }

  private @Nullable Snapshot openSound(Path path, int version) {
    try {
      readAnew(path);
      Snapshot snapshot = Snapshot.open(path);
      try {
        snapshot.verifyBlocks();
        if (snapshot.version() != version) {
          throw Failure.damaged("%s holds version %d", path, snapshot.version());
        }
        return snapshot;
      } catch (Failure damaged) {
        snapshot.close();
        throw damaged;
      }
    } catch (Failure damaged) {
      note(damaged);
      return null;
    }
  }

  /** Has a file that will be mapped read from the disk, in large pieces. */
  private static void readAnew(Path path) {
    try (NativeFile file = NativeFile.openToRead(path)) {
      file.forget();
      file.readAhead();
    } catch (IOException failed) {
      throw Failure.io("open " + path, failed);
    }
  }

  private void attempt(Runnable check) {
    try {
      check.run();
    } catch (Failure damaged) {
      note(damaged);
    }
  }

  /** What may not be read may well be sound: that is no fault of the data. */
  private void note(Failure failure) {
    if (failure.getCause() instanceof IOException cause && Failure.isDenied(cause)) {
      throw failure;
    }
    faults.add(String.valueOf(failure.getMessage()));
  }

  /** Several threads, a chunk each at a time: that is what keeps several reads under way. */
  private void verifyAll(List<Task> tasks) {
    AtomicInteger next = new AtomicInteger();
    Workers.run(
        "verify",
        Math.min(THREADS, tasks.size()),
        () -> {
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocate(PIECE, NativeFile.DIRECT_ALIGNMENT);
            for (int i = next.getAndIncrement(); i < tasks.size(); i = next.getAndIncrement()) {
              Task task = tasks.get(i);
              attempt(() -> task.run(buffer));
            }
          }
        });
  }

  /** A piece of the work that may find a fault. */
  private interface Task {
    void run(MemorySegment buffer);
  }

  private void verifyChunk(int chunk, @Nullable Snapshot snapshot, MemorySegment buffer) {
    Path path = folder.chunk(chunk);
    if (!Files.exists(path)) {
      throw FolderChunkStore.missing(path);
    }
    try (Arena arena = Arena.ofConfined()) {
      ChunkTable table;
      try (NativeFile file = NativeFile.openToRead(path)) {
        file.forget();
        table = ChunkTable.read(file, arena);
      }
      if (snapshot != null && chunk < snapshot.chunkCount() && !snapshot.agreesWith(chunk, table)) {
        throw Failure.damaged("%s belongs to another dataset than its snapshot", path);
      }
      try (NativeFile file = NativeFile.openDirect(path)) {
        verifyData(file, table, buffer);
      }
    } catch (IOException failed) {
      throw Failure.io("read " + path, failed);
    }
  }

  /** One pass over the data in large pieces; a sample's checksum may span several. */
  private void verifyData(NativeFile file, ChunkTable table, MemorySegment buffer)
      throws IOException {
    long start = table.header().dataOffset();
    long end = start + table.header().dataBytes();
    CRC32C checksum = new CRC32C();
    int sample = 0;
    long damaged = 0;
    long at = start;
    for (long piece = start; piece < end || sample < table.sampleCount(); piece += PIECE) {
      long got = piece < end ? file.read(buffer, PIECE, piece) : 0;
      long filled = Math.min(piece + got, end);
      if (piece < end && filled < Math.min(piece + PIECE, end)) {
        throw Failure.damaged("%s is damaged: it ends before byte %d", file.path(), end);
      }
      for (; sample < table.sampleCount(); sample++) {
        long sampleEnd = start + table.end(sample);
        long here = Math.min(sampleEnd, Math.max(filled, at));
        checksum.update(buffer.asSlice(Math.min(at - piece, PIECE), here - at).asByteBuffer());
        at = here;
        if (at < sampleEnd) {
          break; // the rest of this sample is in the next piece
        }
        if ((int) checksum.getValue() != table.checksum(sample) && ++damaged <= NAMED) {
          Failure fault = Dataset.damaged(file.path(), table.sample(sample).keyText());
          faults.add(String.valueOf(fault.getMessage()));
        }
        checksum.reset();
        samples.incrementAndGet();
      }
      progress.advance(got);
    }
    if (damaged > NAMED) {
      faults.add(file.path() + " is damaged: " + (damaged - NAMED) + " more of its samples");
    }
    bytes.addAndGet(table.header().dataBytes());
  }
}
