package org.gristway.snapshot;

import static org.gristway.snapshot.SnapshotFormat.CHUNK_BYTES;
import static org.gristway.snapshot.SnapshotFormat.FOOTER_BYTES;
import static org.gristway.snapshot.SnapshotFormat.HEADER_BYTES;
import static org.gristway.snapshot.SnapshotFormat.NAME_MASK;
import static org.gristway.snapshot.SnapshotFormat.SAMPLE_BYTES;
import static org.gristway.snapshot.SnapshotFormat.SLOT_BYTES;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Optional;
import org.gristway.Failure;
import org.gristway.chunk.ChunkCatalog;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.ChunkTable;
import org.gristway.chunk.DatasetId;
import org.gristway.chunk.Extent;
import org.gristway.chunk.Key;
import org.gristway.chunk.LittleEndian;
import org.gristway.chunk.SampleEntry;
import org.gristway.chunk.Shape;
import org.gristway.snapshot.SnapshotFormat.Header;
import org.gristway.snapshot.SnapshotFormat.LabelKind;

/**
 * The metadata of one dataset version, used straight from its mapped file: opening it costs the
 * same for a thousand samples and for a billion, and no heap is spent per sample.
 *
 * <p>Samples are numbered from 0 in the order of their bytes in the chunks. A block of 64 KiB is
 * checked against its checksum when it is first touched, so what is returned has been verified; a
 * run, which lasts longer than files stay what they are, asks for more by {@link #hold}. Every
 * method may be called from any thread until {@link #close}; each throws {@link Failure} (damaged)
 * if it touches bytes that are not what was written.
 *
 * <p>Next on the way from file to tensor: {@link org.gristway.plan.PlanStep}, what is done with the
 * samples of an epoch.
 */
public final class Snapshot implements ChunkCatalog, AutoCloseable {

  private static final long FIND_EVERY = 32;

  private final String where;
  private final Arena arena;
  private final MemorySegment file; // for lookups, which check several numbers at once
  private CheckedBlocks blocks; // others once they hold; either do, whichever a thread sees
  private final Header header;
  private final List<Shape> shapes;
  private final int[] storedEnds; // of each shape: how many part ends follow a key

  private Snapshot(
      String where, Arena arena, MemorySegment file, MemorySegment checksums, Header header) {
    this.where = where;
    this.arena = arena;
    this.header = header;
    this.file = file;
    this.blocks = new CheckedBlocks(where, arena, file, checksums, header.checksumsAt());
    long shapeBytes = header.checksumsAt() - header.shapesAt();
    if (shapeBytes > ChunkFormat.MAX_TABLE_BYTES) {
      throw SnapshotFormat.damaged(where, "its part names are too long");
    }
    MemorySegment stored = MemorySegment.ofArray(blocks.bytes(header.shapesAt(), (int) shapeBytes));
    this.shapes = ChunkTable.readShapes(stored, where);
    this.storedEnds = shapes.stream().mapToInt(shape -> shape.size() - 1).toArray();
  }

  /** The file name of a version's snapshot. */
  public static String fileName(int version) {
    return SnapshotFormat.fileName(version);
  }

  /** Opens a snapshot: checks its header and footer and maps the rest. */
  public static Snapshot open(Path path) {
    String where = path.toString();
    Arena arena = Arena.ofShared();
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      long size = channel.size();
      if (size < HEADER_BYTES + FOOTER_BYTES) {
        throw SnapshotFormat.damaged(where, "its " + size + " bytes are too few for a snapshot");
      }
      MemorySegment head = read(channel, 0, HEADER_BYTES, where);
      Header header = Header.read(head, size, where);
      MemorySegment checksums = readChecksums(channel, head, header, where);
      MemorySegment file = channel.map(FileChannel.MapMode.READ_ONLY, 0, size, arena);
      return new Snapshot(where, arena, file, checksums, header);
    } catch (IOException failed) {
      arena.close();
      throw Failure.io("open " + path, failed);
    } catch (Failure refused) {
      arena.close();
      throw refused;
    }
  }

  /** The checksums of the blocks, which must not change while the file is in use. */
  private static MemorySegment readChecksums(
      FileChannel channel, MemorySegment head, Header header, String where) throws IOException {
    MemorySegment footer = read(channel, header.fileBytes() - FOOTER_BYTES, FOOTER_BYTES, where);
    if (LittleEndian.getLong(footer, 20) != SnapshotFormat.FOOTER_MAGIC
        || LittleEndian.getInt(footer, 16) != LittleEndian.checksum(footer.asSlice(0, 16))
        || LittleEndian.getLong(footer, 0) != header.fileBytes()
        || LittleEndian.getInt(footer, 8) != LittleEndian.getInt(head, HEADER_BYTES - 4)) {
      throw SnapshotFormat.damaged(where, "its footer is not the one written");
    }
    int bytes = Math.toIntExact(4 * SnapshotFormat.blocks(header.checksumsAt()));
    MemorySegment checksums = read(channel, header.checksumsAt(), bytes, where);
    if (LittleEndian.getInt(footer, 12) != LittleEndian.checksum(checksums)) {
      throw SnapshotFormat.damaged(where, "its checksums fail their own checksum");
    }
    return checksums;
  }

  private static MemorySegment read(FileChannel channel, long offset, int length, String where)
      throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(length);
    while (bytes.hasRemaining()) {
      if (channel.read(bytes, offset + bytes.position()) < 0) {
        throw SnapshotFormat.damaged(where, "it was cut off while it was opened");
      }
    }
    return MemorySegment.ofArray(bytes.array());
  }

  /**
   * Keeps what a run needs as it is from now on, whatever happens to the file. Where samples are,
   * their lengths, labels and checksums go to memory of this process as they are first asked for,
   * 24 bytes per sample; keys and parts are checked each time they are asked for, against checksums
   * in memory, 1 byte for 128 of them. What has changed is a {@link Failure} (damaged). {@link
   * #find} and the key order, which no run needs, stay as they are.
   */
  public synchronized void hold() {
    if (!blocks.isHolding()) {
      blocks = blocks.holding(header.namesAt());
    }
  }

  /** Checks every block, and that every record agrees with its neighbours. */
  public void verify() {
    verifyBlocks();
    verifySamples(0, sampleCount());
  }

  /** Checks every block, and that the chunks add up to the samples. */
  public void verifyBlocks() {
    blocks.checkAll();
    checkChunks();
  }

  /**
   * Checks that the records of some samples make sense, and that a few of their keys are found: the
   * index has passed its checksums, and looking for all would take longer than reading the data.
   */
  public void verifySamples(long from, long to) {
    for (long id = from; id < to; id++) {
      location(id);
      if (shape(id).size() > 1) {
        partEnds(id);
      }
      if (id % FIND_EVERY == 0 && find(keyBytes(id)) != id) {
        throw SnapshotFormat.damaged(where, "its index does not find '" + key(id) + "'");
      }
    }
  }

  /** True if a table is this chunk's, and tells the same of every sample as this snapshot. */
  public boolean agreesWith(int chunk, ChunkTable table) {
    long first = firstSample(chunk);
    int count = table.sampleCount();
    if (firstSample(chunk + 1) - first != count
        || table.headerChecksum() != chunkHeaderChecksum(chunk)) {
      return false;
    }
    // Names stand in both in the same order and form.
    long start = nameStart(first);
    long length = nameStart(first + count) - start;
    if (length != table.names().byteSize()
        || start + length > header.nameBytes()
        || blocks.touch(header.namesAt() + start, length).mismatch(table.names()) != -1) {
      return false;
    }
    for (int i = 0; i < count; i++) {
      long id = first + i;
      if (length(id) != table.end(i) - table.start(i)
          || checksum(id) != table.checksum(i)
          || label(id) != table.label(i)
          || !shape(id).equals(table.shape(i))) {
        return false;
      }
    }
    return true;
  }

  private void checkChunks() {
    boolean right = firstSample(0) == 0 && firstSample(chunkCount()) == sampleCount();
    for (int chunk = 0; chunk < chunkCount(); chunk++) {
      right &= firstSample(chunk) <= firstSample(chunk + 1);
    }
    if (!right) {
      throw SnapshotFormat.damaged(where, "its chunks do not add up to its samples");
    }
  }

  /** Which dataset this is, in any version. */
  public DatasetId datasetId() {
    return header.dataset();
  }

  /** Which version of which content this is: two snapshots with the same id hold the same. */
  public DatasetId id() {
    return header.snapshot();
  }

  public int version() {
    return header.datasetVersion();
  }

  public long sampleCount() {
    return header.samples();
  }

  /** The sum of all samples' lengths. */
  public long dataBytes() {
    return header.dataBytes();
  }

  /** The bytes that keys and part ends take in it. */
  public long nameBytes() {
    return header.nameBytes();
  }

  /** The size of the file itself. */
  public long fileBytes() {
    return header.fileBytes();
  }

  /** True if labels are folder names with numbers, false if they are plain numbers. */
  public boolean hasNamedLabels() {
    return header.labelKind() == LabelKind.NAMED;
  }

  /** One more than the highest named label, or 0. */
  public int namedLabelCount() {
    return (int) header.namedLabels();
  }

  /** The name of a label, if it has one. */
  public Optional<String> labelName(int label) {
    if (label < 0 || label >= header.namedLabels()) {
      return Optional.empty();
    }
    byte[] stored = blocks.bytes(header.labelsAt() + 4L * label, 4);
    int sample = LittleEndian.getInt(MemorySegment.ofArray(stored), 0);
    if (sample == SnapshotFormat.NO_SAMPLE) {
      return Optional.empty();
    }
    byte[] folder = Key.firstFolder(keyBytes(checkedId(Integer.toUnsignedLong(sample))));
    return Optional.ofNullable(folder).map(name -> new String(name, StandardCharsets.UTF_8));
  }

  /** The lists of part names that samples have, by number. */
  public List<Shape> shapes() {
    return shapes;
  }

  public String key(long sample) {
    return new String(keyBytes(sample), StandardCharsets.UTF_8);
  }

  public byte[] keyBytes(long sample) {
    return names(sample, 0, keyLength(sample));
  }

  public int label(long sample) {
    return blocks.smallNumber(record(sample) + 20);
  }

  /** The bytes of all its parts together. */
  public long length(long sample) {
    long length = blocks.number(record(sample + 1)) - blocks.number(record(sample));
    if (length < 0) {
      throw contradiction(sample);
    }
    return length;
  }

  public int checksum(long sample) {
    return blocks.smallNumber(record(sample) + 16);
  }

  public Shape shape(long sample) {
    int shape = (int) (blocks.number(record(sample) + 8) >>> 48);
    if (shape >= shapes.size()) {
      throw contradiction(sample);
    }
    return shapes.get(shape);
  }

  /** Where each part ends, counted from the sample's first byte. */
  public long[] partEnds(long sample) {
    long length = length(sample);
    long[] ends = new long[shape(sample).size()];
    if (ends.length > 1) {
      byte[] names = names(sample, keyLength(sample), 8 * (ends.length - 1));
      LongBuffer stored = ByteBuffer.wrap(names).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
      for (int i = 0; i < ends.length - 1; i++) {
        ends[i] = stored.get(i);
        if (ends[i] < (i == 0 ? 0 : ends[i - 1]) || ends[i] > length) {
          throw contradiction(sample);
        }
      }
    }
    ends[ends.length - 1] = length;
    return ends;
  }

  /** All that is known of a sample but its place. */
  public SampleEntry entry(long sample) {
    int label = label(sample);
    return new SampleEntry(
        keyBytes(sample),
        shape(sample),
        partEnds(sample),
        label,
        label >= 0 && hasNamedLabels(),
        checksum(sample));
  }

  /** Where a sample's bytes are. */
  public Extent location(long sample) {
    long start = blocks.number(record(checkedId(sample)));
    int chunk = chunkOf(sample);
    long at = chunkRecord(chunk);
    long offset = blocks.number(at + 16) + (start - blocks.number(at + 8));
    long length = length(sample);
    if (offset < 0 || length > chunkFileBytes(chunk) || offset > chunkFileBytes(chunk) - length) {
      throw contradiction(sample);
    }
    return new Extent(chunk, offset, length);
  }

  /** Where a sample's bytes begin in the file of the chunk that is known to hold it. */
  public long offsetIn(int chunk, long sample) {
    long at = chunkRecord(chunk);
    return blocks.number(at + 16) + (blocks.number(record(sample)) - blocks.number(at + 8));
  }

  /** The chunk that holds a sample: the last one that begins at or before it. */
  private int chunkOf(long sample) {
    int low = 0;
    int high = chunkCount() - 1;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (firstSample(middle) <= sample) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  @Override
  public int chunkCount() {
    return (int) header.chunks();
  }

  /** The first sample in a chunk; for the chunk after the last, the number of samples. */
  public long firstSample(int chunk) {
    return blocks.number(chunkRecord(chunk));
  }

  @Override
  public long chunkFileBytes(int chunk) {
    return blocks.number(chunkRecord(chunk) + 24);
  }

  @Override
  public int chunkHeaderChecksum(int chunk) {
    return blocks.smallNumber(chunkRecord(chunk) + 32);
  }

  /** Where samples' bytes begin in a chunk's file. */
  public long chunkDataOffset(int chunk) {
    return blocks.number(chunkRecord(chunk) + 16);
  }

  /** How many bytes the samples of a chunk have. */
  public long chunkDataBytes(int chunk) {
    return blocks.number(chunkRecord(chunk + 1) + 8) - blocks.number(chunkRecord(chunk) + 8);
  }

  /** The dataset version that added a chunk. */
  public int chunkVersion(int chunk) {
    return blocks.smallNumber(chunkRecord(chunk) + 36);
  }

  /** The sample with this key, or -1. */
  public long find(String key) {
    return find(key.getBytes(StandardCharsets.UTF_8));
  }

  /** The sample with this key, or -1. */
  public long find(byte[] key) {
    long hash = KeyHash.of(key);
    int fingerprint = KeyHash.fingerprint(hash);
    long end = header.indexAt() + header.slots() * SLOT_BYTES;
    long at = header.indexAt() + KeyHash.home(hash, header.homeSlots()) * SLOT_BYTES;
    for (; at < end; at += SLOT_BYTES) {
      blocks.ensureChecked(at, SLOT_BYTES);
      int next = LittleEndian.getInt(file, at);
      if (next == 0) {
        return -1;
      }
      if (LittleEndian.getShort(file, at + 4) == fingerprint) {
        long sample = checkedId(Integer.toUnsignedLong(next) - 1);
        if (hasKey(sample, key)) {
          return sample;
        }
      }
    }
    return -1;
  }

  /** Millions of these a second: every access to the mapped file is a likely cache miss. */
  private boolean hasKey(long sample, byte[] key) {
    long record = header.samplesAt() + sample * SAMPLE_BYTES;
    blocks.ensureChecked(record, 2 * SAMPLE_BYTES);
    long names = LittleEndian.getLong(file, record + 8);
    long nextNames = LittleEndian.getLong(file, record + SAMPLE_BYTES + 8);
    long start = names & NAME_MASK;
    long length =
        (nextNames & NAME_MASK) - start - 8L * partEndsStored((int) (names >>> 48), sample);
    if (length != key.length || start + length > header.nameBytes()) {
      return false;
    }
    blocks.ensureChecked(header.namesAt() + start, length);
    return LittleEndian.equals(file, header.namesAt() + start, key);
  }

  private int partEndsStored(int shape, long sample) {
    if (shape >= storedEnds.length) {
      throw contradiction(sample);
    }
    return storedEnds[shape];
  }

  /** The sample whose key is the {@code rank}-th in key order: folders together, '/' lowest. */
  public long inKeyOrder(long rank) {
    return checkedId(Integer.toUnsignedLong(blocks.lookUp(header.orderAt() + 4 * rank)));
  }

  /** The rank of the first key that is not below {@code key} in key order. */
  public long rankOf(byte[] key) {
    long low = 0;
    long high = sampleCount();
    while (low < high) {
      long middle = (low + high) >>> 1;
      if (compareKeys(keyBytes(inKeyOrder(middle)), key) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  private static int compareKeys(byte[] one, byte[] other) {
    for (int i = 0; i < Math.min(one.length, other.length); i++) {
      if (one[i] != other[i]) {
        int left = one[i] == '/' ? 0 : one[i] & 0xff;
        int right = other[i] == '/' ? 0 : other[i] & 0xff;
        return Integer.compare(left, right);
      }
    }
    return Integer.compare(one.length, other.length);
  }

  private long record(long sample) {
    if (sample < 0 || sample > header.samples()) {
      throw new IndexOutOfBoundsException("no sample " + sample);
    }
    return header.samplesAt() + sample * SAMPLE_BYTES;
  }

  private long chunkRecord(int chunk) {
    if (chunk < 0 || chunk > header.chunks()) {
      throw new IndexOutOfBoundsException("no chunk " + chunk);
    }
    return HEADER_BYTES + (long) chunk * CHUNK_BYTES;
  }

  private long nameStart(long sample) {
    return blocks.number(record(sample) + 8) & NAME_MASK;
  }

  private int keyLength(long sample) {
    int shape = (int) (blocks.number(record(sample) + 8) >>> 48);
    long length = nameStart(sample + 1) - nameStart(sample) - 8L * partEndsStored(shape, sample);
    if (length < 1 || length > SampleEntry.MAX_KEY) {
      throw contradiction(sample);
    }
    return (int) length;
  }

  private byte[] names(long sample, long from, int length) {
    long start = nameStart(sample) + from;
    if (start + length > header.nameBytes()) {
      throw contradiction(sample);
    }
    return blocks.bytes(header.namesAt() + start, length);
  }

  private long checkedId(long sample) {
    if (sample < 0 || sample >= header.samples()) {
      throw SnapshotFormat.damaged(where, "it speaks of sample " + sample + ", which is not there");
    }
    return sample;
  }

  private Failure contradiction(long sample) {
    return SnapshotFormat.damaged(where, "its record of sample " + sample + " contradicts itself");
  }

  @Override
  public void close() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }
}
