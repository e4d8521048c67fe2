package org.gristway.chunk;

import static org.gristway.chunk.ChunkFormat.HEADER_BYTES;

import java.lang.foreign.MemorySegment;
import org.gristway.Failure;

/**
 * The first {@value ChunkFormat#HEADER_BYTES} bytes of a chunk: which one it is and how it is laid
 * out. The drawing is on {@link ChunkFormat}.
 *
 * @param number of the chunk in its dataset, from 0
 * @param version of the dataset that added it, from 1
 * @param last whether it is the version's last chunk
 * @param dataset the dataset's identity
 * @param firstSample the id of its first sample
 * @param sampleCount how many samples it holds
 * @param shapeBytes size of the shapes in its table
 * @param nameBytes size of the names in its table
 * @param dataBytes size of all samples' bytes
 * @param tableChecksum CRC-32C of all between the header and the data
 * @param before the checksum of the header of the chunk before it, 0 if it is the first: what makes
 *     a chunk of another dataset known even where both were packed from files of the same names
 */
public record ChunkHeader(
    int number,
    int version,
    boolean last,
    DatasetId dataset,
    long firstSample,
    long sampleCount,
    long shapeBytes,
    long nameBytes,
    long dataBytes,
    int tableChecksum,
    int before) {

  private static final int LAST = 1;

  /**
   * Where the data begins: after the table, on a page boundary so that direct reads start there.
   */
  public long dataOffset() {
    return ChunkFormat.dataOffset(sampleCount, shapeBytes, nameBytes);
  }

  public long fileBytes() {
    return dataOffset() + dataBytes + ChunkFormat.FOOTER_BYTES;
  }

  /** Writes the header; returns its checksum, by which snapshots know the chunk. */
  public int write(MemorySegment to) {
    to.asSlice(0, HEADER_BYTES).fill((byte) 0);
    LittleEndian.putLong(to, 0, ChunkFormat.MAGIC);
    LittleEndian.putInt(to, 8, ChunkFormat.VERSION);
    LittleEndian.putInt(to, 12, number);
    LittleEndian.putInt(to, 16, version);
    LittleEndian.putInt(to, 20, last ? LAST : 0);
    LittleEndian.putLong(to, 24, dataset.high());
    LittleEndian.putLong(to, 32, dataset.low());
    LittleEndian.putLong(to, 40, firstSample);
    LittleEndian.putLong(to, 48, sampleCount);
    LittleEndian.putLong(to, 56, shapeBytes);
    LittleEndian.putLong(to, 64, nameBytes);
    LittleEndian.putLong(to, 72, dataBytes);
    LittleEndian.putLong(to, 80, dataOffset());
    LittleEndian.putLong(to, 88, fileBytes());
    LittleEndian.putInt(to, 96, tableChecksum);
    LittleEndian.putInt(to, 100, before);
    int checksum = LittleEndian.checksum(to.asSlice(0, HEADER_BYTES - 4));
    LittleEndian.putInt(to, HEADER_BYTES - 4, checksum);
    return checksum;
  }

  /** The header's own checksum as it stands in its bytes. */
  public static int checksumIn(MemorySegment header) {
    return LittleEndian.getInt(header, HEADER_BYTES - 4);
  }

  /** Reads and checks a header. {@code where} names the file in the failure. */
  public static ChunkHeader read(MemorySegment from, String where) {
    if (LittleEndian.getLong(from, 0) != ChunkFormat.MAGIC) {
      throw Failure.damaged("%s is not a chunk: its first bytes are not a chunk's", where);
    }
    int format = LittleEndian.getInt(from, 8);
    int checksum = LittleEndian.checksum(from.asSlice(0, HEADER_BYTES - 4));
    if (checksum != checksumIn(from)) {
      throw Failure.damaged("%s is damaged: its header fails its checksum", where);
    }
    if (format > ChunkFormat.VERSION || format < 1) {
      throw Failure.wrongCall(
          "%s has chunk format version %d, and this Gristway reads up to %d: use a newer Gristway",
          where, Integer.toUnsignedLong(format), ChunkFormat.VERSION);
    }
    ChunkHeader header =
        new ChunkHeader(
            LittleEndian.getInt(from, 12),
            LittleEndian.getInt(from, 16),
            (LittleEndian.getInt(from, 20) & LAST) != 0,
            new DatasetId(LittleEndian.getLong(from, 24), LittleEndian.getLong(from, 32)),
            LittleEndian.getLong(from, 40),
            LittleEndian.getLong(from, 48),
            LittleEndian.getLong(from, 56),
            LittleEndian.getLong(from, 64),
            LittleEndian.getLong(from, 72),
            LittleEndian.getInt(from, 96),
            LittleEndian.getInt(from, 100));
    if (!header.isPlausible()
        || LittleEndian.getLong(from, 80) != header.dataOffset()
        || LittleEndian.getLong(from, 88) != header.fileBytes()) {
      throw Failure.damaged("%s is damaged: its header contradicts itself", where);
    }
    return header;
  }

  /** Bounds that keep the arithmetic above from overflowing and tables from filling memory. */
  private boolean isPlausible() {
    return number >= 0
        && version >= 1
        && firstSample >= 0
        && firstSample <= ChunkFormat.MAX_SAMPLES
        && sampleCount >= 0
        && sampleCount <= ChunkFormat.MAX_TABLE_BYTES
        && shapeBytes >= 0
        && shapeBytes <= ChunkFormat.MAX_TABLE_BYTES
        && nameBytes >= 0
        && nameBytes <= ChunkFormat.MAX_TABLE_BYTES
        && dataBytes >= 0
        && dataBytes <= 1L << 60
        && dataOffset() <= ChunkFormat.MAX_TABLE_BYTES;
  }
}
