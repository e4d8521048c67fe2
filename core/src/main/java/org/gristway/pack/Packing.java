package org.gristway.pack;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.zip.CRC32C;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.chunk.ChunkHeader;
import org.gristway.chunk.ChunkTableWriter;
import org.gristway.chunk.DatasetId;
import org.gristway.chunk.Key;
import org.gristway.chunk.SampleEntry;
import org.gristway.dataset.Workers;
import org.gristway.os.Folders;
import org.gristway.pack.ListedSample.ShapeBook;
import org.gristway.snapshot.LabelTally;
import org.gristway.snapshot.Snapshot;
import org.gristway.snapshot.SnapshotWriter;
import org.gristway.spool.RecordBuffer;
import org.gristway.spool.Spool;
import org.jspecify.annotations.Nullable;

/**
 * One version's worth of packing, into a folder that nobody looks into yet:
 *
 * <ol>
 *   <li>list all sources (names and sizes only) into spools, several sources at once;
 *   <li>place: number the classes, put the samples in order, cut the order into chunks;
 *   <li>copy the bytes to their places, in source order, by several threads; meanwhile, index:
 *       write what the snapshot holds of the samples, and refuse a key that occurs twice;
 *   <li>finish: write the chunks' tables and the snapshot, and wait until all is durable.
 * </ol>
 *
 * <p>Everything that decides what is written where happens in the second step, in one thread: the
 * result is the same for any number of threads.
 */
final class Packing {

  private final List<Source> sources;
  private final Path target;
  private final Path scratch;
  private final PackOptions options;
  private final @Nullable Snapshot existing;
  private final @Nullable Snapshot numbering;
  private final Notices notices;
  private final Troubles troubles;
  private final Progress progress;
  private final BooleanSupplier stopped;
  private final ShapeBook book = new ShapeBook();
  private final List<Spool> listings = new ArrayList<>();
  private final List<Spool> classes = new ArrayList<>();
  private final Set<String> unusedFolders = new TreeSet<>();

  /**
   * @param target an empty folder, for chunks and the snapshot
   * @param scratch an empty folder, for what is not kept
   * @param existing the version that is added to, if there is one
   * @param numbering the dataset that {@link PackOptions#classesOf} names, if it names one
   * @param stopped turns true when the user has had enough
   */
  Packing(
      List<Path> sources,
      Path target,
      Path scratch,
      PackOptions options,
      @Nullable Snapshot existing,
      @Nullable Snapshot numbering,
      Notices notices,
      Progress progress,
      BooleanSupplier stopped) {
    this.sources =
        sources.stream().map(path -> Source.of(path, scratch, options.threads())).toList();
    this.target = target;
    this.scratch = scratch;
    this.options = options;
    this.existing = existing;
    this.numbering = numbering;
    this.notices = notices;
    this.troubles = new Troubles(notices, options.skipUnreadable());
    this.progress = progress;
    this.stopped = stopped;
  }

  PackReport run() throws IOException {
    list();
    while (true) {
      int excluded = troubles.excludedCount();
      PackReport report = attempt();
      if (report != null) {
        progress.end();
        return report;
      }
      if (troubles.excludedCount() == excluded) {
        throw new IllegalStateException("an attempt failed without a reason");
      }
      // What could not be read is known now; a second attempt leaves no trace of it.
      Folders.deleteTree(target);
      Files.createDirectory(target);
    }
  }

  private void list() throws IOException {
    progress.begin("listing", Progress.Unit.SAMPLES, 0);
    for (int i = 0; i < sources.size(); i++) {
      listings.add(new Spool(scratch.resolve("listing-" + i)));
      classes.add(new Spool(scratch.resolve("classes-" + i)));
    }
    AtomicInteger next = new AtomicInteger();
    AtomicBoolean failed = new AtomicBoolean();
    BooleanSupplier pointless = () -> failed.get() || stopped.getAsBoolean();
    Workers.run(
        "list",
        Math.min(options.threads(), sources.size()),
        () -> {
          try {
            for (int i = next.getAndIncrement(); i < sources.size(); i = next.getAndIncrement()) {
              list(i, pointless);
            }
          } catch (RuntimeException broken) {
            failed.set(true); // the other threads need not go on
            throw broken;
          }
        });
    checkStopped();
    troubles.check();
    if (listings.stream().allMatch(listing -> listing.count() == 0)) {
      boolean isOne = sources.size() == 1;
      String what = isOne ? sources.getFirst().path() + " holds" : "the sources hold";
      throw Failure.wrongCall(
          "there is nothing to pack: %s",
          troubles.total() == 0 ? what + " no files" : "all that " + what + " is left out");
    }
    Lister.adviceOn(unusedFolders).ifPresent(notices::remark);
  }

  private void list(int index, BooleanSupplier pointless) {
    Source source = sources.get(index);
    try (Spool listing = listings.get(index);
        Spool names = classes.get(index)) {
      Lister lister =
          new Lister(source, options, listing, names, book, troubles, progress, pointless);
      source.list(lister);
      lister.end();
      synchronized (unusedFolders) {
        unusedFolders.addAll(lister.unusedFolders());
      }
    } catch (IOException failed) {
      throw Failure.io("list " + source.path(), failed);
    }
  }

  /** Returns nothing if samples turned out to be unreadable and may be left out. */
  private @Nullable PackReport attempt() throws IOException {
    Path room = Files.createDirectory(scratch.resolve("attempt"));
    int version = existing == null ? 1 : existing.version() + 1;
    int firstChunk = existing == null ? 0 : existing.chunkCount();
    long firstSample = existing == null ? 0 : existing.sampleCount();
    try (Placement placement = new Placement(room, options.chunkSize(), book)) {
      LabelTally tally = new LabelTally();
      DatasetId dataset = place(room, placement, version, tally);
      placement.cut(dataset, version, firstChunk, firstSample);
      checkStopped();
      try (SnapshotWriter snapshot = newSnapshot(room, placement, dataset, version);
          ChunkFiles files = new ChunkFiles(target, placement.chunks());
          Meanwhile index = new Meanwhile(() -> index(snapshot, placement, version))) {
        files.create();
        copy(placement, files, index);
        if (placement.count() + troubles.excludedCount() != listed()) {
          return null;
        }
        finish(placement, files, snapshot);
      }
      return new PackReport(
          version,
          placement.count(),
          tally.labelled(),
          tally.classes(),
          placement.dataBytes(),
          placement.chunks().size(),
          troubles.total());
    } finally {
      Folders.deleteTree(room);
    }
  }

  private long listed() {
    return listings.stream().mapToLong(Spool::count).sum();
  }

  /** Decides labels and places; returns the dataset's identity, which comes from all of it. */
  private DatasetId place(Path room, Placement placement, int version, LabelTally tally)
      throws IOException {
    progress.begin("placing", Progress.Unit.SAMPLES, listed());
    MessageDigest digest = sha256();
    RecordBuffer record = new RecordBuffer();
    CRC32C checksum = new CRC32C(); // of all so far, noted after every sample
    ByteBuffer identity = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN);
    identity.putLong(options.seed()).putLong(options.chunkSize());
    long start = mix(options.seed() + version);
    long ordinal = 0;
    try (LabelNumbers labels =
        new LabelNumbers(room, existing, numbering, options.classesOf(), classes)) {
      for (Spool listing : listings) {
        try (Spool.Reader reader = listing.read()) {
          for (; reader.hasNext(); ordinal++) {
            ListedSample sample = ListedSample.read(reader.next(), book);
            if (troubles.isExcluded(ordinal)) {
              continue;
            }
            int label = label(sample, labels);
            tally.add(label);
            long place = placement.count();
            placement.add(sample, label, options.keepOrder() ? place : mix(start + place));
            record.clear().putBytes(sample.key()).putNumber(label);
            for (int i = 0; i < sample.lengths().length; i++) {
              record.putNumber(sample.lengths()[i]);
            }
            checksum.update(record.array(), record.offset(), record.length());
            if (identity.remaining() < Long.BYTES) {
              digest.update(identity.flip());
              identity.clear();
            }
            identity.putInt((int) checksum.getValue());
            progress.advance(1);
          }
        }
      }
    }
    if (placement.count() == 0) {
      throw Failure.damaged("not one file could be read; nothing was published");
    }
    if (numbering != null && tally.labelled() == 0) {
      throw Failure.wrongCall(
          "not one sample is of a class, so --classes-of has nothing to number; where the classes"
              + " are folders in a tar, add --labels folders");
    }
    digest.update(identity.flip());
    return existing == null ? DatasetId.of(digest.digest()) : existing.datasetId();
  }

  private int label(ListedSample sample, LabelNumbers labels) {
    if (numbering != null && sample.number() != SampleEntry.NO_LABEL) {
      throw Failure.wrongCall(
          "'%s' has its label from a 'cls' part, and --classes-of numbers folders; leave the option"
              + " out, or add --labels folders",
          Key.escape(sample.key()));
    }
    byte[] folder = sample.inClass() ? Key.firstFolder(sample.key()) : null;
    return folder == null ? sample.number() : labels.of(folder);
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException missing) {
      throw new IllegalStateException(missing); // every JDK has it
    }
  }

  /** A permutation of all 64-bit numbers that looks random (the finalizer of SplitMix64). */
  private static long mix(long value) {
    long mixed = value + 0x9e3779b97f4a7c15L;
    mixed = (mixed ^ mixed >>> 30) * 0xbf58476d1ce4e5b9L;
    mixed = (mixed ^ mixed >>> 27) * 0x94d049bb133111ebL;
    return mixed ^ mixed >>> 31;
  }

  private SnapshotWriter newSnapshot(Path room, Placement placement, DatasetId dataset, int version)
      throws IOException {
    long samples = placement.count();
    long chunks = placement.chunks().size();
    long nameBytes = placement.nameBytes();
    if (existing != null) {
      samples += existing.sampleCount();
      chunks += existing.chunkCount();
      nameBytes += existing.nameBytes();
    }
    return new SnapshotWriter(target, room, version, dataset, samples, chunks, nameBytes);
  }

  private void index(SnapshotWriter snapshot, Placement placement, int version) throws IOException {
    if (existing != null) {
      addExisting(snapshot, existing);
    }
    Placement.Cursor cursor = placement.inChunkOrder();
    for (ChunkHeader chunk : placement.chunks()) {
      snapshot.addChunk(chunk.dataOffset(), chunk.fileBytes(), version, 0);
      for (long i = 0; i < chunk.sampleCount(); i++) {
        snapshot.add(cursor.next());
      }
      checkStopped();
    }
    snapshot.index();
  }

  private void addExisting(SnapshotWriter snapshot, Snapshot before) throws IOException {
    for (int chunk = 0; chunk < before.chunkCount(); chunk++) {
      snapshot.addChunk(
          before.chunkDataOffset(chunk),
          before.chunkFileBytes(chunk),
          before.chunkVersion(chunk),
          before.chunkHeaderChecksum(chunk));
      long end = before.firstSample(chunk + 1);
      for (long id = before.firstSample(chunk); id < end; id++) {
        snapshot.add(before.entry(id));
        snapshot.setChecksum(id, before.checksum(id));
      }
    }
  }

  private void copy(Placement placement, ChunkFiles files, Meanwhile index) throws IOException {
    progress.begin("packing", Progress.Unit.BYTES, placement.dataBytes());
    BooleanSupplier pointless = () -> stopped.getAsBoolean() || index.hasFailed();
    new Copier(sources, listings, book, placement, files, troubles, progress, pointless)
        .run(options.threads());
    checkStopped();
    index.join();
    troubles.check();
  }

  private void finish(Placement placement, ChunkFiles files, SnapshotWriter snapshot)
      throws IOException {
    List<ChunkHeader> chunks = placement.chunks();
    long bytes = chunks.stream().mapToLong(ChunkHeader::fileBytes).sum();
    progress.begin("writing to disk", Progress.Unit.BYTES, bytes);
    // The disk takes the data while the tables are being made of what is known now.
    try (Meanwhile data =
        new Meanwhile(() -> files.sync(options.threads(), Progress.NONE, stopped))) {
      writeTables(placement, files, snapshot);
      data.join();
    }
    files.sync(options.threads(), progress, stopped);
    checkStopped();
    snapshot.finish();
    checkStopped();
  }

  private void writeTables(Placement placement, ChunkFiles files, SnapshotWriter snapshot)
      throws IOException {
    List<ChunkHeader> chunks = placement.chunks();
    Placement.Cursor cursor = placement.inChunkOrder();
    int[] before = {existing == null ? 0 : existing.chunkHeaderChecksum(existing.chunkCount() - 1)};
    try (Placement.Checksums checksums = placement.checksumsInChunkOrder()) {
      for (int i = 0; i < chunks.size(); i++) {
        ChunkHeader chunk = chunks.get(i);
        try (ChunkTableWriter table = new ChunkTableWriter(chunk)) {
          for (long j = 0; j < chunk.sampleCount(); j++) {
            int checksum = checksums.next();
            table.add(cursor.next().withChecksum(checksum));
            snapshot.setChecksum(chunk.firstSample() + j, checksum);
          }
          files.with(i, file -> before[0] = table.write(file, before[0]));
          snapshot.setHeaderChecksum(chunk.number(), before[0]);
        }
        checkStopped();
      }
    }
  }

  private void checkStopped() {
    if (stopped.getAsBoolean()) {
      throw new CancellationException("interrupted");
    }
  }
}
