package org.gristway.snapshot;

import static org.gristway.snapshot.SnapshotFormat.BLOCK_BYTES;
import static org.gristway.snapshot.SnapshotFormat.CHUNK_BYTES;
import static org.gristway.snapshot.SnapshotFormat.FOOTER_BYTES;
import static org.gristway.snapshot.SnapshotFormat.HEADER_BYTES;
import static org.gristway.snapshot.SnapshotFormat.SAMPLE_BYTES;
import static org.gristway.snapshot.SnapshotFormat.SLOT_BYTES;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.zip.CRC32C;
import org.gristway.Failure;
import org.gristway.chunk.ChunkTable;
import org.gristway.chunk.ChunkTable.ShapeNumbers;
import org.gristway.chunk.DatasetId;
import org.gristway.chunk.LittleEndian;
import org.gristway.chunk.SampleEntry;
import org.gristway.chunk.Shape;
import org.gristway.os.NativeFile;
import org.gristway.snapshot.SnapshotFormat.Header;
import org.gristway.snapshot.SnapshotFormat.LabelKind;
import org.gristway.spool.RecordBuffer;
import org.gristway.spool.SortedSpool;
import org.jspecify.annotations.Nullable;

/**
 * Writes a snapshot from the samples of its chunks, in the order in which they lie there. Packing
 * and rebuilding both use it, which is what makes a rebuilt snapshot the same byte for byte.
 *
 * <p>In this order: {@link #addChunk} and {@link #add} for all samples, {@link #index}, which finds
 * keys that occur twice, {@link #finish}. Meanwhile, from any threads, before the last of these:
 * {@link #setChecksum} for every sample, and {@link #setHeaderChecksum} where it was not known. The
 * heap it needs does not grow with the samples, except by 4 bytes a class.
 */
public final class SnapshotWriter implements AutoCloseable {

  /** Classes without a sample take numbers too; more of them would be a damaged label. */
  private static final int MOST_EMPTY_CLASSES = 1 << 20;

  private final Path path;
  private final NativeFile file;
  private final int version;
  private final DatasetId dataset;
  private final long samples;
  private final long chunks;
  private final long nameBytes;

  private final long samplesAt;
  private final long namesAt;
  private final long orderAt;
  private final long indexAt;
  private long slots;

  private final Arena arena = Arena.ofShared();
  private final MemorySegment fixed; // header, chunks and samples, mapped: checksums come later
  private final SectionWriter names;
  private final SortedSpool byKey;
  private final SortedSpool byHash;
  private final ShapeNumbers shapes = new ShapeNumbers();
  private final RecordBuffer key = new RecordBuffer();
  private final RecordBuffer payload = new RecordBuffer();

  private int[] labelSamples = new int[16];
  private int namedLabels;
  private LabelKind labelKind = LabelKind.NONE;
  private long sample;
  private long chunk;
  private long position;
  private long nameEnd;

  /**
   * @param folder where the file is created
   * @param scratch where temporary files may go
   * @param nameBytes the sum of all entries' {@link SampleEntry#nameBytes}
   */
  public SnapshotWriter(
      Path folder,
      Path scratch,
      int version,
      DatasetId dataset,
      long samples,
      long chunks,
      long nameBytes)
      throws IOException {
    this.path = folder.resolve(SnapshotFormat.fileName(version));
    this.version = version;
    this.dataset = dataset;
    this.samples = samples;
    this.chunks = chunks;
    this.nameBytes = nameBytes;
    this.samplesAt = SnapshotFormat.align(HEADER_BYTES + (chunks + 1) * CHUNK_BYTES);
    this.namesAt = SnapshotFormat.align(samplesAt + (samples + 1) * SAMPLE_BYTES);
    this.orderAt = SnapshotFormat.align(namesAt + nameBytes);
    this.indexAt = SnapshotFormat.align(orderAt + samples * 4);
    this.file = NativeFile.create(path);
    try (FileChannel channel =
        FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      file.allocate(indexAt); // so that the mapping is backed by real blocks
      this.fixed = channel.map(FileChannel.MapMode.READ_WRITE, 0, namesAt, arena);
    } catch (IOException failed) {
      file.close();
      throw Failure.io("write " + path, failed);
    }
    this.names = new SectionWriter(namesAt);
    this.byKey = new SortedSpool(scratch.resolve("keys-" + version));
    this.byHash = new SortedSpool(scratch.resolve("hashes-" + version));
  }

  /** The file being written. */
  public Path path() {
    return path;
  }

  /** Begins the next chunk, whose header's checksum may be told later. */
  public void addChunk(long dataOffset, long fileBytes, int addedIn, int headerChecksum) {
    long at = HEADER_BYTES + chunk * CHUNK_BYTES;
    LittleEndian.putLong(fixed, at, sample);
    LittleEndian.putLong(fixed, at + 8, position);
    LittleEndian.putLong(fixed, at + 16, dataOffset);
    LittleEndian.putLong(fixed, at + 24, fileBytes);
    LittleEndian.putInt(fixed, at + 32, headerChecksum);
    LittleEndian.putInt(fixed, at + 36, addedIn);
    chunk++;
  }

  /** Adds the next sample of the current chunk, all but its checksum. */
  public void add(SampleEntry entry) throws IOException {
    putSample(shapes.of(entry.shape()), entry.label());
    names.putBytes(entry.key());
    for (int i = 0; i < entry.partEnds().length - 1; i++) {
      names.putLong(entry.partEnds()[i]);
    }
    if (entry.label() != SampleEntry.NO_LABEL) {
      addLabel(entry);
    }
    payload.clear().putNumber(sample);
    byKey.add(sortable(entry.key()), payload);
    byHash.add(key.clear().putSortable(KeyHash.of(entry.key())), payload);
    position += entry.length();
    nameEnd += entry.nameBytes();
    sample++;
  }

  private void putSample(int shape, int label) {
    long at = samplesAt + sample * SAMPLE_BYTES;
    LittleEndian.putLong(fixed, at, position);
    LittleEndian.putLong(fixed, at + 8, nameEnd | (long) shape << 48);
    LittleEndian.putInt(fixed, at + 20, label);
  }

  /** A slash sorts before every other byte, so that a folder's keys stand together, in order. */
  private static byte[] sortable(byte[] key) {
    byte[] result = key.clone();
    for (int i = 0; i < result.length; i++) {
      if (result[i] == '/') {
        result[i] = 0;
      }
    }
    return result;
  }

  private void addLabel(SampleEntry entry) {
    LabelKind kind = entry.named() ? LabelKind.NAMED : LabelKind.NUMBERED;
    if (labelKind != LabelKind.NONE && labelKind != kind) {
      throw Failure.wrongCall(
          "'%s' has a label of another kind than the samples before it: labels are either folder"
              + " names or the numbers in 'cls' parts, not both in one dataset",
          entry.keyText());
    }
    labelKind = kind;
    if (!entry.named()) {
      return;
    }
    if (entry.label() > samples + MOST_EMPTY_CLASSES) {
      throw Failure.damaged(
          "the label %d of '%s' is higher than any class of %d samples can be",
          entry.label(), entry.keyText(), samples);
    }
    if (entry.label() >= namedLabels) {
      if (entry.label() >= labelSamples.length) {
        labelSamples = Arrays.copyOf(labelSamples, Math.max(2 * namedLabels, entry.label() + 1));
      }
      Arrays.fill(labelSamples, namedLabels, entry.label() + 1, SnapshotFormat.NO_SAMPLE);
      namedLabels = entry.label() + 1;
    }
    if (labelSamples[entry.label()] == SnapshotFormat.NO_SAMPLE) {
      labelSamples[entry.label()] = (int) sample;
    }
  }

  /** Writes the key order and the key index; a key that occurs twice is refused here. */
  public void index() throws IOException {
    if (sample != samples || chunk != chunks || nameEnd != nameBytes) {
      throw new IllegalStateException("the samples of " + path + " miss its layout");
    }
    putSample(0, 0); // the record that ends the last sample
    addEnd();
    names.flush();
    writeOrder();
    byKey.close();
    writeIndex();
    byHash.close();
  }

  private void addEnd() {
    long at = HEADER_BYTES + chunks * CHUNK_BYTES;
    fixed.asSlice(at, CHUNK_BYTES).fill((byte) 0);
    LittleEndian.putLong(fixed, at, sample);
    LittleEndian.putLong(fixed, at + 8, position);
  }

  private void writeOrder() throws IOException {
    SectionWriter order = new SectionWriter(orderAt);
    byte @Nullable [] last = null;
    SortedSpool.Cursor cursor = byKey.sorted();
    while (cursor.next()) {
      RecordBuffer current = cursor.key();
      int from = current.offset();
      int to = from + current.length();
      if (last != null && Arrays.equals(last, 0, last.length, current.array(), from, to)) {
        throw Failure.wrongCall(
            "two samples have the key '%s': every key must be unique; rename one of them, or pack"
                + " sources whose paths differ",
            new String(last, StandardCharsets.UTF_8).replace('\0', '/'));
      }
      last = Arrays.copyOfRange(current.array(), from, to);
      order.putInt((int) cursor.payload().takeNumber());
    }
    order.flush();
  }

  /**
   * Keys in the order of their hashes, each in its home slot or the first free one behind it: that
   * order makes the table a single sequential write. Searches never wrap around; the table is as
   * much longer as the last keys need, and ends with an empty slot.
   */
  private void writeIndex() throws IOException {
    long homes = SnapshotFormat.homeSlots(samples);
    SectionWriter index = new SectionWriter(indexAt);
    SortedSpool.Cursor cursor = byHash.sorted();
    long next = 0;
    while (cursor.next()) {
      long hash = cursor.key().takeSortable();
      for (long home = KeyHash.home(hash, homes); next < home; next++) {
        index.putSlot(0, 0);
      }
      index.putSlot((int) cursor.payload().takeNumber() + 1, KeyHash.fingerprint(hash));
      next++;
    }
    do {
      index.putSlot(0, 0);
      next++;
    } while (next < homes);
    index.flush();
    slots = next;
  }

  /** Tells the checksum of a sample's bytes. From any thread, once a sample. */
  public void setChecksum(long sample, int checksum) {
    LittleEndian.putInt(fixed, samplesAt + sample * SAMPLE_BYTES + 16, checksum);
  }

  /** Tells the checksum of a chunk's header, known only now. From any thread. */
  public void setHeaderChecksum(int chunk, int checksum) {
    LittleEndian.putInt(fixed, HEADER_BYTES + (long) chunk * CHUNK_BYTES + 32, checksum);
  }

  /** Writes the rest and returns when the file is durable. It is complete, under its own name. */
  public void finish() throws IOException {
    long labelsAt = SnapshotFormat.align(indexAt + slots * SLOT_BYTES);
    SectionWriter end = new SectionWriter(indexAt + slots * SLOT_BYTES);
    end.alignTo(labelsAt);
    for (int i = 0; i < namedLabels; i++) {
      end.putInt(labelSamples[i]);
    }
    long shapesAt = SnapshotFormat.align(labelsAt + 4L * namedLabels);
    end.alignTo(shapesAt);
    for (Shape shape : shapes.inOrder()) {
      end.putBytes(ChunkTable.shapeBytes(shape));
    }
    end.flush();
    long checksumsAt = shapesAt + shapes.bytes();
    long fileBytes = checksumsAt + 4 * SnapshotFormat.blocks(checksumsAt) + FOOTER_BYTES;
    Header header =
        new Header(
            version,
            dataset,
            snapshotId(),
            samples,
            chunks,
            position,
            namedLabels,
            nameBytes,
            SnapshotFormat.homeSlots(samples),
            samplesAt,
            namesAt,
            orderAt,
            indexAt,
            slots,
            labelsAt,
            shapesAt,
            checksumsAt,
            fileBytes,
            labelKind);
    int headerChecksum = header.write(fixed);
    writeChecksums(checksumsAt, fileBytes, headerChecksum);
    file.sync();
  }

  private DatasetId snapshotId() {
    MessageDigest digest;
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException missing) {
      throw new IllegalStateException(missing); // every JDK has it
    }
    MemorySegment numbers = MemorySegment.ofArray(new byte[24]);
    LittleEndian.putLong(numbers, 0, dataset.high());
    LittleEndian.putLong(numbers, 8, dataset.low());
    LittleEndian.putLong(numbers, 16, version);
    digest.update(numbers.asByteBuffer());
    for (long i = 0; i < chunks; i++) {
      digest.update(fixed.asSlice(HEADER_BYTES + i * CHUNK_BYTES, CHUNK_BYTES).asByteBuffer());
    }
    return DatasetId.of(digest.digest());
  }

  private void writeChecksums(long checksumsAt, long fileBytes, int headerChecksum)
      throws IOException {
    SectionWriter checksums = new SectionWriter(checksumsAt);
    try (Arena block = Arena.ofConfined()) {
      MemorySegment bytes = block.allocate(BLOCK_BYTES);
      CRC32C all = new CRC32C();
      for (long at = 0; at < checksumsAt; at += BLOCK_BYTES) {
        long length = Math.min(BLOCK_BYTES, checksumsAt - at);
        file.readFully(bytes, length, at);
        int checksum = LittleEndian.checksum(bytes.asSlice(0, length));
        checksums.putInt(checksum);
        all.update(
            new byte[] {
              (byte) checksum,
              (byte) (checksum >>> 8),
              (byte) (checksum >>> 16),
              (byte) (checksum >>> 24)
            });
      }
      checksums.flush();
      MemorySegment footer = block.allocate(FOOTER_BYTES, 8);
      SnapshotFormat.writeFooter(footer, fileBytes, headerChecksum, (int) all.getValue());
      file.write(footer, FOOTER_BYTES, fileBytes - FOOTER_BYTES);
    }
  }

  @Override
  public void close() throws IOException {
    arena.close();
    byKey.close();
    byHash.close();
    file.close();
  }

  /** Buffered writes from one place in the file onwards. */
  private final class SectionWriter {
    private final MemorySegment buffer = arena.allocate(1 << 16, 8);
    private long at;
    private int filled;

    SectionWriter(long at) {
      this.at = at;
    }

    void putBytes(byte[] bytes) throws IOException {
      for (int from = 0; from < bytes.length; ) {
        reserve(1);
        int count = (int) Math.min(bytes.length - from, buffer.byteSize() - filled);
        MemorySegment.copy(MemorySegment.ofArray(bytes), from, buffer, filled, count);
        filled += count;
        from += count;
      }
    }

    void putLong(long value) throws IOException {
      reserve(8);
      LittleEndian.putLong(buffer, filled, value);
      filled += 8;
    }

    void putInt(int value) throws IOException {
      reserve(4);
      LittleEndian.putInt(buffer, filled, value);
      filled += 4;
    }

    void putSlot(int samplePlusOne, int fingerprint) throws IOException {
      reserve(SLOT_BYTES);
      LittleEndian.putInt(buffer, filled, samplePlusOne);
      LittleEndian.putShort(buffer, filled + 4, fingerprint);
      filled += SLOT_BYTES;
    }

    void alignTo(long offset) throws IOException {
      while (at + filled < offset) {
        putBytes(new byte[] {0});
      }
    }

    private void reserve(int count) throws IOException {
      if (buffer.byteSize() - filled < count) {
        flush();
      }
    }

    void flush() throws IOException {
      file.write(buffer, filled, at);
      at += filled;
      filled = 0;
    }
  }
}
