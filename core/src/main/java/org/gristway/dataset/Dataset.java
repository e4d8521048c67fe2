package org.gristway.dataset;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.CRC32C;
import org.gristway.Failure;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.Extent;
import org.gristway.chunk.FolderChunkStore;
import org.gristway.chunk.LittleEndian;
import org.gristway.chunk.SampleEntry;
import org.gristway.snapshot.Snapshot;

/**
 * An open dataset: what samples it has, and their bytes.
 *
 * <pre>{@code
 * try (Dataset dataset = Dataset.open(Path.of("flowers.gw"))) {
 *   for (Sample sample : dataset) {
 *     byte[] bytes = dataset.read(sample);
 *   }
 * }
 * }</pre>
 *
 * <p>Bytes are returned only after they have passed their checksum. All methods may be called from
 * any thread until {@link #close}; a dataset that is appended to meanwhile stays the version that
 * was opened. Damage met on the way is a {@link Failure} that names the chunk and the sample.
 */
public final class Dataset implements Iterable<Sample>, AutoCloseable {

  private static final int PIECE = 4 << 20;

  private final DatasetFolder folder;
  private final Snapshot snapshot;
  private final FolderChunkStore store;
  private final Optional<Portion> portion;
  private final AtomicInteger holders; // of the snapshot: it is closed with the last
  private final AtomicBoolean closed = new AtomicBoolean();

  private Dataset(DatasetFolder folder, Optional<Portion> portion, Snapshot snapshot) {
    this(folder, portion, snapshot, new AtomicInteger(1));
  }

  private Dataset(
      DatasetFolder folder, Optional<Portion> portion, Snapshot snapshot, AtomicInteger holders) {
    this.folder = folder;
    this.portion = portion;
    this.snapshot = snapshot;
    this.holders = holders;
    this.store = new FolderChunkStore(folder.path(), snapshot);
  }

  /** Opens the newest version of the dataset in a folder. */
  public static Dataset open(Path path) {
    DatasetFolder folder = DatasetFolder.at(path);
    return new Dataset(folder, folder.portion(), folder.openNewest());
  }

  /** Opens a given version, from 1. */
  public static Dataset open(Path path, int version) {
    DatasetFolder folder = DatasetFolder.at(path);
    if (!folder.versions().contains(version)) {
      throw Failure.wrongCall("%s has no version %d; it has %s", path, version, folder.versions());
    }
    return new Dataset(folder, folder.portion(), Snapshot.open(folder.snapshot(version)));
  }

  /**
   * Opens what a run has begun with: a version by its number alone may have become another since.
   *
   * @param version from 1, or 0 for the newest
   * @param snapshotId of that version, as {@link Snapshot#id} has it; an empty text for any
   */
  public static Dataset open(Path path, int version, String snapshotId) {
    Dataset dataset = version == 0 ? open(path) : open(path, version);
    try {
      dataset.refuseReplaced(snapshotId);
      return dataset;
    } catch (Failure replaced) {
      dataset.close();
      throw replaced;
    }
  }

  /**
   * Refuses to be taken for another snapshot.
   *
   * @param snapshotId that is expected; an empty text for any
   */
  public void refuseReplaced(String snapshotId) {
    if (!snapshotId.isEmpty() && !snapshotId.equals(snapshot.id().toString())) {
      throw Failure.wrongCall(
          "%s was replaced while a run read it: the run began with snapshot %s, and version %d is"
              + " snapshot %s now; bring the old dataset back, or start the run anew",
          folder.path(), snapshotId, snapshot.version(), snapshot.id());
    }
  }

  /**
   * Opens the same once more, to be closed by itself. It has this very snapshot in memory, and not
   * what its file holds by now; chunks are opened by their path, and held against it. Not to be
   * called after {@link #close}.
   *
   * @throws Failure if the folder is gone, or has another snapshot in place of this one: then its
   *     chunks are others too
   */
  public Dataset share() {
    open(path(), snapshot.version(), snapshot.id().toString()).close();
    if (holders.getAndUpdate(count -> count == 0 ? 0 : count + 1) == 0) {
      throw new IllegalStateException(folder.path() + " is closed");
    }
    return new Dataset(folder, portion, snapshot, holders);
  }

  public Path path() {
    return folder.path();
  }

  /**
   * The metadata behind this dataset. It is closed with the dataset, or the last that shares it.
   */
  public Snapshot snapshot() {
    return snapshot;
  }

  /** Which node's chunks are in the folder, if it has not all of them. */
  public Optional<Portion> portion() {
    return portion;
  }

  /**
   * Refuses a folder that has not all chunks.
   *
   * @param what cannot be done with it: "unpacked", and the like
   */
  public void refusePortion(String what) {
    if (portion.isPresent()) {
      throw portion.get().refusal(folder.path(), what);
    }
  }

  /**
   * Refuses a folder in which chunks that belong there are missing, or have another size than they
   * were written with. Their content is not looked at.
   *
   * @throws Failure (damaged) that names them
   */
  public void refuseIncomplete() {
    ChunkSizes.check(folder, snapshot, portion);
  }

  /** How many samples there are. */
  public long size() {
    return snapshot.sampleCount();
  }

  /** A sample by its id. */
  public Sample sample(long id) {
    if (id < 0 || id >= size()) {
      throw Failure.wrongCall("there is no sample %d: %s has %d", id, folder.path(), size());
    }
    SampleEntry entry = snapshot.entry(id);
    List<Sample.Part> parts = new ArrayList<>(entry.shape().size());
    long start = 0;
    for (int i = 0; i < entry.partEnds().length; i++) {
      long end = entry.partEnds()[i];
      parts.add(new Sample.Part(entry.shape().parts().get(i), start, end - start));
      start = end;
    }
    return new Sample(id, entry.keyText(), entry.label(), List.copyOf(parts), entry.length());
  }

  /** A sample by its key. */
  public Optional<Sample> find(String key) {
    long id = snapshot.find(key);
    return id < 0 ? Optional.empty() : Optional.of(sample(id));
  }

  /** All samples, in the order in which their bytes lie in the chunks. */
  @Override
  public Iterator<Sample> iterator() {
    return new Iterator<>() {
      private long next;

      @Override
      public boolean hasNext() {
        return next < size();
      }

      @Override
      public Sample next() {
        if (!hasNext()) {
          throw new NoSuchElementException();
        }
        return sample(next++);
      }
    };
  }

  /** The samples whose keys begin with {@code prefix}, in key order. */
  public Iterable<Sample> withPrefix(String prefix) {
    byte[] bytes = prefix.getBytes(StandardCharsets.UTF_8);
    long first = snapshot.rankOf(bytes);
    return () ->
        new Iterator<>() {
          private long rank = first;

          @Override
          public boolean hasNext() {
            return rank < size() && startsWith(snapshot.keyBytes(snapshot.inKeyOrder(rank)), bytes);
          }

          @Override
          public Sample next() {
            if (!hasNext()) {
              throw new NoSuchElementException();
            }
            return sample(snapshot.inKeyOrder(rank++));
          }
        };
  }

  /**
   * What a folder of keys holds: the names of its samples, and of its folders with a slash at the
   * end, in key order.
   *
   * @param name the folder's path, or the empty string for all that is at the top
   */
  public List<String> list(String name) {
    String prefix = name.isEmpty() || name.endsWith("/") ? name : name + "/";
    byte[] inside = prefix.getBytes(StandardCharsets.UTF_8);
    List<String> children = new ArrayList<>();
    long rank = snapshot.rankOf(inside);
    while (rank < size()) {
      byte[] key = snapshot.keyBytes(snapshot.inKeyOrder(rank));
      if (!startsWith(key, inside)) {
        break;
      }
      int slash = inside.length;
      while (slash < key.length && key[slash] != '/') {
        slash++;
      }
      boolean isFolder = slash < key.length;
      int end = isFolder ? slash + 1 : slash;
      children.add(new String(key, inside.length, end - inside.length, StandardCharsets.UTF_8));
      long next = isFolder ? rankBehindFolder(Arrays.copyOf(key, end)) : rank + 1;
      rank = Math.max(next, rank + 1); // ahead, even if the order is not one
    }
    return children;
  }

  /** A slash is the lowest byte of all; with a one in its place, a folder's keys are all below. */
  private long rankBehindFolder(byte[] folderWithSlash) {
    folderWithSlash[folderWithSlash.length - 1] = 1;
    return snapshot.rankOf(folderWithSlash);
  }

  private static boolean startsWith(byte[] key, byte[] prefix) {
    return key.length >= prefix.length
        && Arrays.equals(key, 0, prefix.length, prefix, 0, prefix.length);
  }

  /** The name of a label, where labels have names. */
  public Optional<String> labelName(int label) {
    return snapshot.labelName(label);
  }

  /** The bytes of all parts of a sample, one after the other. */
  public byte[] read(Sample sample) {
    if (sample.length() > Integer.MAX_VALUE - 8) {
      throw Failure.wrongCall(
          "'%s' has %d bytes, too many for one array; use writeTo", sample.key(), sample.length());
    }
    Extent extent = locate(sample);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(Math.max(1, extent.length()));
      store.fill(extent, memory);
      MemorySegment bytes = memory.asSlice(0, extent.length());
      CRC32C checksum = new CRC32C();
      checksum.update(bytes.asByteBuffer());
      check(sample, extent, checksum);
      return bytes.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  /** Where a sample is; a chunk that is another node's is not missing, but elsewhere. */
  private Extent locate(Sample sample) {
    Extent extent = snapshot.location(sample.id());
    int chunk = extent.chunk();
    if (portion.isPresent()
        && !Files.exists(folder.chunk(chunk))
        && portion.get().chunks(snapshot).noneMatch(own -> own == chunk)) {
      throw Failure.wrongCall(
          "'%s' is in %s, which is on another node: %s holds only the chunks of %s",
          sample.key(), ChunkFormat.fileName(chunk), folder.path(), portion.get());
    }
    return extent;
  }

  /** The bytes of one part of a sample. */
  public byte[] read(Sample sample, Sample.Part part) {
    return Arrays.copyOfRange(
        read(sample), (int) part.offset(), (int) (part.offset() + part.length()));
  }

  /**
   * Writes one part of a sample of any size; the whole sample is verified before the first byte.
   */
  public void writeTo(Sample sample, Sample.Part part, OutputStream out) throws IOException {
    if (sample.length() <= PIECE) {
      out.write(read(sample), (int) part.offset(), (int) part.length());
      return;
    }
    Extent extent = locate(sample);
    int[] pieces = verifyPieces(sample, extent);
    writePieces(sample, extent, pieces, part.offset(), part.offset() + part.length(), out);
  }

  /** Checks a sample that is too large to hold; returns the checksum of each piece. */
  private int[] verifyPieces(Sample sample, Extent extent) {
    int[] pieces = new int[Math.toIntExact((extent.length() + PIECE - 1) / PIECE)];
    CRC32C checksum = new CRC32C();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(PIECE);
      for (int i = 0; i < pieces.length; i++) {
        MemorySegment piece = fillPiece(extent, i, memory);
        checksum.update(piece.asByteBuffer());
        pieces[i] = LittleEndian.checksum(piece);
      }
    }
    check(sample, extent, checksum);
    return pieces;
  }

  /** Writes bytes {@code from} to {@code to} of a sample, each piece checked once more before. */
  private void writePieces(
      Sample sample, Extent extent, int[] pieces, long from, long to, OutputStream out)
      throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(PIECE);
      for (int i = (int) (from / PIECE); i < pieces.length && (long) i * PIECE < to; i++) {
        MemorySegment piece = fillPiece(extent, i, memory);
        if (LittleEndian.checksum(piece) != pieces[i]) {
          throw damaged(folder.chunk(extent.chunk()), sample.key());
        }
        long at = (long) i * PIECE;
        long first = Math.clamp(from - at, 0, piece.byteSize());
        long last = Math.clamp(to - at, 0, piece.byteSize());
        out.write(piece.asSlice(first, last - first).toArray(ValueLayout.JAVA_BYTE));
      }
    }
  }

  private MemorySegment fillPiece(Extent extent, int index, MemorySegment memory) {
    long at = (long) index * PIECE;
    long length = Math.min(PIECE, extent.length() - at);
    store.fill(new Extent(extent.chunk(), extent.offset() + at, length), memory);
    return memory.asSlice(0, length);
  }

  private void check(Sample sample, Extent extent, CRC32C checksum) {
    if ((int) checksum.getValue() != snapshot.checksum(sample.id())) {
      throw damaged(folder.chunk(extent.chunk()), sample.key());
    }
  }

  /** The failure for a sample whose bytes are not what was packed. */
  static Failure damaged(Path chunk, String key) {
    return Failure.damaged(
        "%s is damaged: sample '%s' fails its checksum; bring the file back from a copy, or pack"
            + " again",
        chunk, key);
  }

  @Override
  public void close() {
    if (!closed.getAndSet(true)) {
      store.close();
      if (holders.decrementAndGet() == 0) {
        snapshot.close();
      }
    }
  }
}
