package org.gristway.chunk;

import java.lang.foreign.MemorySegment;
import org.gristway.Failure;

/**
 * The chunk file, {@code chunk-<number>.gwc}: many samples behind a table that describes them, so
 * that a chunk can be understood, and a lost snapshot rebuilt, from the chunks alone.
 *
 * <pre>
 *        +--------------------------------------------------------------+
 *      0 | header, 128 bytes                                            |
 *        |   0 u64 magic "GWCHUNK\n"      56 u64 bytes of shapes        |
 *        |   8 u32 format version         64 u64 bytes of names         |
 *        |  12 u32 chunk number           72 u64 bytes of data          |
 *        |  16 u32 dataset version        80 u64 offset of data         |
 *        |  20 u32 flags: 1 = last of     88 u64 bytes of the file      |
 *        |         its dataset version    96 u32 CRC-32C of the table   |
 *        |  24 16 bytes dataset id       100 u32 checksum of the header |
 *        |  40 u64 id of first sample            of the chunk before it |
 *        |  48 u64 count of samples      104 zeros                      |
 *        |                               124 u32 CRC-32C of bytes 0-123 |
 *        +--------------------------------------------------------------+
 *    128 | table: shapes | entries | names | zeros up to a multiple of  |
 *        |        4096; its checksum covers all of it, zeros included   |
 *        |   shape: u16 parts, then each part: u16 length, UTF-8 name   |
 *        |   entry: u64 end of the sample's bytes, from start of data   |
 *        |          u32 end of its names, from start of names           |
 *        |          u32 CRC-32C of the sample's bytes                   |
 *        |          i32 label, -1 for none                              |
 *        |          u16 shape, u16 flags: 1 = the label's name is the   |
 *        |                                key's first path component    |
 *        |   names: key in UTF-8, then u64 end of each part but the     |
 *        |          last, from the sample's first byte                  |
 *        +--------------------------------------------------------------+
 *  4096k | data: the samples' bytes, without gaps, in entry order       |
 *        +--------------------------------------------------------------+
 *    end | footer, 24 bytes                                             |
 *    -24 |   0 u64 bytes of the file       12 u32 CRC-32C of bytes 0-11 |
 *        |   8 u32 header's checksum       16 u64 magic "GWCFOOT\n"     |
 *        +--------------------------------------------------------------+
 * </pre>
 *
 * <p>All numbers are little-endian. Every byte is covered: header, table and footer by their own
 * checksums, data by the samples'. The table is written last and holds no time, host or path.
 *
 * <p>Next on the way from file to tensor: {@link org.gristway.snapshot.Snapshot}.
 */
public final class ChunkFormat {

  /** "GWCHUNK\n", read as a little-endian number. */
  static final long MAGIC = magic("GWCHUNK\n");

  /** "GWCFOOT\n", read as a little-endian number. */
  static final long FOOTER_MAGIC = magic("GWCFOOT\n");

  /** The format version written. Older ones are read; newer ones are refused by name. */
  public static final int VERSION = 1;

  public static final int HEADER_BYTES = 128;
  public static final int ENTRY_BYTES = 24;
  public static final int FOOTER_BYTES = 24;

  /** Data starts at a multiple of this. */
  public static final int ALIGNMENT = 4096;

  /**
   * A chunk is closed when its table reaches this, however small its samples: what reads a table
   * holds it in memory.
   */
  public static final long MAX_TABLE_BYTES = 16 << 20;

  /** Ids are 32-bit numbers in the snapshot's tables, where one value means "none". */
  public static final long MAX_SAMPLES = 0xffff_fffeL;

  /** {@value}: the entry's label is named by the first path component of its key. */
  static final int NAMED = 1;

  private ChunkFormat() {}

  /** Eight ASCII characters as the number that stands for them in a file. */
  public static long magic(String text) {
    long value = 0;
    for (int i = 0; i < 8; i++) {
      value |= (long) text.charAt(i) << 8 * i;
    }
    return value;
  }

  /** The file name of a chunk. */
  public static String fileName(int number) {
    return String.format(java.util.Locale.ROOT, "chunk-%06d.gwc", number);
  }

  /** Where data begins in a chunk with such a table. */
  public static long dataOffset(long samples, long shapeBytes, long nameBytes) {
    long table = HEADER_BYTES + shapeBytes + samples * ENTRY_BYTES + nameBytes;
    return (table + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }

  static void writeFooter(MemorySegment to, long fileBytes, int headerChecksum) {
    LittleEndian.putLong(to, 0, fileBytes);
    LittleEndian.putInt(to, 8, headerChecksum);
    LittleEndian.putInt(to, 12, LittleEndian.checksum(to.asSlice(0, 12)));
    LittleEndian.putLong(to, 16, FOOTER_MAGIC);
  }

  /** Checks a footer against the header it must belong to. */
  public static void checkFooter(
      MemorySegment footer, long fileBytes, int headerChecksum, String where) {
    if (LittleEndian.getLong(footer, 16) != FOOTER_MAGIC
        || LittleEndian.getInt(footer, 12) != LittleEndian.checksum(footer.asSlice(0, 12))
        || LittleEndian.getLong(footer, 0) != fileBytes
        || LittleEndian.getInt(footer, 8) != headerChecksum) {
      throw Failure.damaged("%s is damaged: its footer is not the one written", where);
    }
  }
}
