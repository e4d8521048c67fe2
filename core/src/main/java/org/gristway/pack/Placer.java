package org.gristway.pack;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.ChunkHeader;
import org.gristway.chunk.Extent;
import org.gristway.chunk.FolderChunkStore;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.DatasetFolder;
import org.gristway.dataset.Portion;
import org.gristway.dataset.Workers;
import org.gristway.os.ExclusiveLock;
import org.gristway.os.Folders;
import org.gristway.os.NativeFile;
import org.gristway.snapshot.Snapshot;

/**
 * Deals the chunks of a dataset to folders, one for each node of a job: each gets all snapshots,
 * the chunks of its node, and a file that says which node that is.
 *
 * <p>A folder is written aside and appears complete, as a packed dataset does. They come one after
 * the other: after a kill, those that are there stay, and the next run makes the rest.
 */
public final class Placer {

  private static final int THREADS = 4;
  private static final int PIECE = 4 << 20;
  private static final int FEWEST_NODES = 2;

  /**
   * A folder that holds what it should.
   *
   * @param chunks of its node
   * @param bytes of their files
   * @param wasThere true if nothing was to be done
   */
  public record Placed(Path target, Portion portion, int chunks, long bytes, boolean wasThere) {}

  private final DatasetFolder folder;
  private final Snapshot snapshot;
  private final FolderChunkStore store;
  private final Progress progress;
  private final BooleanSupplier stopped;

  private Placer(Dataset dataset, Progress progress, BooleanSupplier stopped) {
    this.folder = DatasetFolder.at(dataset.path());
    this.snapshot = dataset.snapshot();
    this.store = new FolderChunkStore(dataset.path(), snapshot);
    this.progress = progress;
    this.stopped = stopped;
  }

  /**
   * Places the newest version of a dataset, and those before it.
   *
   * @param targets the folders of nodes 0, 1 and so on; each does not exist, is empty, or is what
   *     it would become
   * @throws Failure if anything is wrong; the folder that was being made is then as it was
   * @throws CancellationException if the thread is interrupted; likewise
   */
  public static List<Placed> place(Path path, List<Path> targets, Progress progress) {
    if (targets.size() < FEWEST_NODES) {
      throw Failure.wrongCall(
          "a dataset is placed on %d nodes or more, not on %d", FEWEST_NODES, targets.size());
    }
    targets.forEach(DatasetFolder::refuseObjectStore);
    try (StopSignal stop = new StopSignal();
        Dataset dataset = Dataset.open(path)) {
      dataset.refusePortion("placed");
      Placer placer = new Placer(dataset, progress, stop);
      try (FolderChunkStore _ = placer.store) {
        return stop.guard(() -> placer.placeAll(targets));
      }
    } catch (IOException failed) {
      throw Failure.io("place " + path, failed);
    }
  }

  private List<Placed> placeAll(List<Path> targets) throws IOException {
    Set<Path> places = new HashSet<>();
    for (int node = 0; node < targets.size(); node++) {
      Path place = Packer.resolve(targets.get(node));
      Packer.checkApart(List.of(folder.path()), place);
      if (!places.add(place)) {
        throw Failure.wrongCall("%s is named twice: each node has its own", targets.get(node));
      }
      boolean unused = isThere(place, targets.get(node), portion(node, targets.size()));
    }
    int[] all = IntStream.range(0, snapshot.chunkCount()).toArray();
    progress.begin("placing", Progress.Unit.BYTES, bytes(all));
    List<Placed> placed = new ArrayList<>();
    for (int node = 0; node < targets.size(); node++) {
      placed.add(place(targets.get(node), portion(node, targets.size())));
    }
    progress.end();
    return placed;
  }

  private Portion portion(int node, int nodes) {
    return new Portion(snapshot.version(), snapshot.id(), node, nodes);
  }

  /** The size of some chunks' files. */
  private long bytes(int[] chunks) {
    long sum = 0;
    for (int chunk : chunks) {
      sum += snapshot.chunkFileBytes(chunk);
    }
    return sum;
  }

  private Placed place(Path target, Portion portion) throws IOException {
    Path place = Packer.resolve(target);
    int[] chunks = portion.chunks(snapshot).toArray();
    long bytes = bytes(chunks);
    try (ExclusiveLock _ = Packer.lock(place, target)) {
      Path work = Packer.work(place);
      Packer.clearKilledPack(work, place);
      if (isThere(place, target, portion)) {
        progress.advance(bytes);
        return new Placed(target, portion, chunks.length, bytes, true);
      }
      try {
        Files.createDirectory(work);
        Path fresh = Files.createDirectory(work.resolve("dataset"));
        copyChunks(chunks, fresh);
        copySnapshots(fresh);
        portion.write(fresh);
        Folders.sync(fresh);
        checkStopped();
        Packer.publish(fresh, place, work, false);
        Folders.sync(place.resolveSibling("."));
      } finally {
        Folders.deleteTree(work);
      }
    }
    return new Placed(target, portion, chunks.length, bytes, false);
  }

  /** True if a folder is the portion already; refuses one that is anything else. */
  private boolean isThere(Path place, Path target, Portion portion) {
    if (!Files.exists(place)) {
      return false;
    }
    if (Files.isDirectory(place)) {
      try (Stream<Path> inside = Files.list(place)) {
        if (inside.findAny().isEmpty()) {
          Packer.refuseMountPoint(place, target);
          return false;
        }
      } catch (IOException failed) {
        throw Failure.io("list " + target, failed);
      }
    }
    if (!DatasetFolder.isDataset(place) || !isWhole(DatasetFolder.at(place), portion)) {
      throw Failure.wrongCall(
          "%s exists already and does not hold the chunks of %s of %s; name a new folder, or delete"
              + " it",
          target, portion, folder.path());
    }
    return true;
  }

  private boolean isWhole(DatasetFolder found, Portion portion) {
    Optional<Portion> there = found.portion();
    if (there.isEmpty() || !there.get().equals(portion)) {
      return false;
    }
    if (!found.versions().containsAll(versions())) {
      return false;
    }
    for (int chunk : portion.chunks(snapshot).toArray()) {
      try {
        if (Files.size(found.chunk(chunk)) != snapshot.chunkFileBytes(chunk)) {
          return false;
        }
      } catch (IOException missing) {
        return false;
      }
    }
    return true;
  }

  private Set<Integer> versions() {
    return folder.versions().headSet(snapshot.version() + 1);
  }

  private void copyChunks(int[] chunks, Path fresh) throws IOException {
    List<ChunkHeader> headers = new ArrayList<>();
    for (int chunk : chunks) {
      headers.add(header(chunk));
    }
    try (ChunkFiles files = new ChunkFiles(fresh, headers)) {
      files.create();
      AtomicInteger next = new AtomicInteger();
      Workers.run(
          "place",
          Math.min(THREADS, chunks.length),
          () -> {
            try (Arena arena = Arena.ofConfined()) {
              MemorySegment buffer = arena.allocate(PIECE, NativeFile.DIRECT_ALIGNMENT);
              for (int i = next.getAndIncrement(); i < chunks.length; i = next.getAndIncrement()) {
                copy(chunks[i], files, i, buffer);
              }
            }
          });
      files.sync(THREADS, Progress.NONE, stopped);
    }
  }

  private ChunkHeader header(int chunk) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment head = arena.allocate(ChunkFormat.HEADER_BYTES, 8);
      store.fill(new Extent(chunk, 0, ChunkFormat.HEADER_BYTES), head);
      return ChunkHeader.read(head, folder.chunk(chunk).toString());
    }
  }

  private void copy(int chunk, ChunkFiles files, int index, MemorySegment buffer) {
    long end = snapshot.chunkFileBytes(chunk);
    for (long at = 0; at < end; at += PIECE) {
      checkStopped();
      long length = Math.min(PIECE, end - at);
      store.fill(new Extent(chunk, at, length), buffer);
      files.write(index, buffer, length, at);
      progress.advance(length);
    }
  }

  private void copySnapshots(Path fresh) throws IOException {
    for (int version : versions()) {
      Path copy = fresh.resolve(Snapshot.fileName(version));
      Files.copy(folder.snapshot(version), copy);
      try (NativeFile file = NativeFile.openToWrite(copy)) {
        file.sync();
      }
    }
  }

  private void checkStopped() {
    if (stopped.getAsBoolean()) {
      throw new CancellationException("interrupted");
    }
  }
}
