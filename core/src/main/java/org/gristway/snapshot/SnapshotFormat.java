package org.gristway.snapshot;

import java.lang.foreign.MemorySegment;
import java.util.Locale;
import org.gristway.Failure;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.DatasetId;
import org.gristway.chunk.LittleEndian;

/**
 * The snapshot file, {@code snapshot-<version>.gws}: everything about every sample of one dataset
 * version, arranged so that it is used without being parsed. It holds nothing that the chunks do
 * not, so it can be rebuilt from them, byte for byte.
 *
 * <pre>
 *        +----------------------------------------------------------------+
 *      0 | header, 256 bytes                                              |
 *        |   0 u64 magic "GWSNAPS\n"         96 u64 offset of samples     |
 *        |   8 u32 format version           104 u64 offset of names       |
 *        |  12 u32 dataset version          112 u64 offset of key order   |
 *        |  16 16 bytes dataset id          120 u64 offset of key index   |
 *        |  32 16 bytes snapshot id         128 u64 slots of key index    |
 *        |  48 u64 count of samples         136 u64 offset of labels      |
 *        |  56 u64 count of chunks          144 u64 offset of shapes      |
 *        |  64 u64 bytes of all samples     152 u64 offset of checksums   |
 *        |  72 u64 count of named labels    160 u64 bytes of the file     |
 *        |  80 u64 bytes of names           168 u32 kind of labels        |
 *        |  88 u64 home slots of key index  172 zeros                     |
 *        |                                  252 u32 CRC-32C of bytes 0-251|
 *        +----------------------------------------------------------------+
 *    256 | chunks, 40 bytes each and one more to end the last             |
 *        |   u64 first sample · u64 position of its first byte            |
 *        |   u64 offset of data in its file · u64 bytes of its file       |
 *        |   u32 its header's checksum · u32 dataset version that added it|
 *        | samples, 24 bytes each, in the order of their bytes in the     |
 *        |   chunks, and one more to end the last                         |
 *        |   u64 position: bytes of all samples before it                 |
 *        |   u48 bytes of all names before its names · u16 shape          |
 *        |   u32 CRC-32C of its bytes · i32 label                         |
 *        | names: key in UTF-8, then u64 end of each part but the last    |
 *        | key order: u32 sample, sorted by key ('/' before all others)   |
 *        | key index: slots of u32 sample + 1 (0: empty), u16 fingerprint |
 *        |   the key's hash, times the home slots, over 2^64 is its home; |
 *        |   it is there or in a slot behind it, before the next empty one|
 *        | labels: u32 a sample of each named label (all ones: none); the |
 *        |   label's name is the first path component of that one's key   |
 *        | shapes: u16 parts, then each part: u16 length, UTF-8 name      |
 *        +----------------------------------------------------------------+
 *        | checksums: u32 CRC-32C of each 64 KiB of all the above         |
 *        +----------------------------------------------------------------+
 *    end | footer, 28 bytes                                               |
 *    -28 |   0 u64 bytes of the file       12 u32 CRC-32C of checksums    |
 *        |   8 u32 header's checksum       16 u32 CRC-32C of bytes 0-15   |
 *        |                                 20 u64 magic "GWSFOOT\n"       |
 *        +----------------------------------------------------------------+
 * </pre>
 *
 * <p>All numbers are little-endian; each part begins at a multiple of 8, with zeros in between. A
 * sample with one part costs 24 bytes in samples, 4 in key order, 7.5 in the key index and its key:
 * 36 bytes, or 40 if it is the only one of its class.
 *
 * <p>A sample's neighbours in the file are its neighbours in the chunks, because training asks for
 * whole extents at a time; listing a folder is the rarer wish and follows the key order.
 */
final class SnapshotFormat {

  static final long MAGIC = ChunkFormat.magic("GWSNAPS\n");
  static final long FOOTER_MAGIC = ChunkFormat.magic("GWSFOOT\n");

  /** The format version written. Older ones are read; newer ones are refused by name. */
  static final int VERSION = 1;

  static final int HEADER_BYTES = 256;
  static final int CHUNK_BYTES = 40;
  static final int SAMPLE_BYTES = 24;
  static final int SLOT_BYTES = 6;
  static final int FOOTER_BYTES = 28;

  /** A block is checked when it is first touched, so opening costs the same for any size. */
  static final int BLOCK_SHIFT = 16;

  static final long BLOCK_BYTES = 1 << BLOCK_SHIFT;

  /** Part of a sample record's second number that is not the shape. */
  static final long NAME_MASK = (1L << 48) - 1;

  /** In labels: no sample has this label. */
  static final int NO_SAMPLE = -1;

  /** Where labels come from. The two kinds are never mixed: their numbers mean different things. */
  enum LabelKind {
    /** No sample has a label. */
    NONE,
    /** Folder names, numbered in sorted order. */
    NAMED,
    /** Numbers given with the samples. */
    NUMBERED
  }

  private SnapshotFormat() {}

  static String fileName(int version) {
    return String.format(Locale.ROOT, "snapshot-%06d.gws", version);
  }

  /** Four in five slots are used: short searches, and 7.5 bytes a sample. */
  static long homeSlots(long samples) {
    return samples + (samples + 3) / 4;
  }

  static long align(long offset) {
    return (offset + 7) & ~7L;
  }

  static long blocks(long bytes) {
    return (bytes + BLOCK_BYTES - 1) >>> BLOCK_SHIFT;
  }

  /** The header's fields, in the order of the drawing. */
  record Header(
      int datasetVersion,
      DatasetId dataset,
      DatasetId snapshot,
      long samples,
      long chunks,
      long dataBytes,
      long namedLabels,
      long nameBytes,
      long homeSlots,
      long samplesAt,
      long namesAt,
      long orderAt,
      long indexAt,
      long slots,
      long labelsAt,
      long shapesAt,
      long checksumsAt,
      long fileBytes,
      LabelKind labelKind) {

    int write(MemorySegment to) {
      to.asSlice(0, HEADER_BYTES).fill((byte) 0);
      LittleEndian.putLong(to, 0, MAGIC);
      LittleEndian.putInt(to, 8, VERSION);
      LittleEndian.putInt(to, 12, datasetVersion);
      LittleEndian.putLong(to, 16, dataset.high());
      LittleEndian.putLong(to, 24, dataset.low());
      LittleEndian.putLong(to, 32, snapshot.high());
      LittleEndian.putLong(to, 40, snapshot.low());
      long[] numbers = {
        samples,
        chunks,
        dataBytes,
        namedLabels,
        nameBytes,
        homeSlots,
        samplesAt,
        namesAt,
        orderAt,
        indexAt,
        slots,
        labelsAt,
        shapesAt,
        checksumsAt,
        fileBytes
      };
      for (int i = 0; i < numbers.length; i++) {
        LittleEndian.putLong(to, 48 + 8L * i, numbers[i]);
      }
      LittleEndian.putInt(to, 168, labelKind.ordinal());
      int checksum = LittleEndian.checksum(to.asSlice(0, HEADER_BYTES - 4));
      LittleEndian.putInt(to, HEADER_BYTES - 4, checksum);
      return checksum;
    }

    /** Reads and checks a header of a file of {@code size} bytes. */
    static Header read(MemorySegment from, long size, String where) {
      if (LittleEndian.getLong(from, 0) != MAGIC) {
        throw Failure.damaged("%s is not a snapshot: its first bytes are not a snapshot's", where);
      }
      if (LittleEndian.getInt(from, HEADER_BYTES - 4)
          != LittleEndian.checksum(from.asSlice(0, HEADER_BYTES - 4))) {
        throw damaged(where, "its header fails its checksum");
      }
      int format = LittleEndian.getInt(from, 8);
      if (format < 1 || format > VERSION) {
        throw Failure.wrongCall(
            "%s has snapshot format version %d, and this Gristway reads up to %d: use a newer"
                + " Gristway",
            where, Integer.toUnsignedLong(format), VERSION);
      }
      long[] numbers = new long[15];
      for (int i = 0; i < numbers.length; i++) {
        numbers[i] = LittleEndian.getLong(from, 48 + 8L * i);
      }
      int kind = LittleEndian.getInt(from, 168);
      Header header =
          new Header(
              LittleEndian.getInt(from, 12),
              new DatasetId(LittleEndian.getLong(from, 16), LittleEndian.getLong(from, 24)),
              new DatasetId(LittleEndian.getLong(from, 32), LittleEndian.getLong(from, 40)),
              numbers[0],
              numbers[1],
              numbers[2],
              numbers[3],
              numbers[4],
              numbers[5],
              numbers[6],
              numbers[7],
              numbers[8],
              numbers[9],
              numbers[10],
              numbers[11],
              numbers[12],
              numbers[13],
              numbers[14],
              LabelKind.values()[Math.clamp(kind, 0, 2)]);
      if (header.fileBytes != size) {
        throw damaged(where, "it has " + size + " bytes and should have " + header.fileBytes);
      }
      if (!header.isConsistent(size)) {
        throw damaged(where, "its header contradicts itself");
      }
      return header;
    }

    /** Every part lies where the counts before it put it; so nothing later can overflow. */
    private boolean isConsistent(long size) {
      boolean bounded =
          datasetVersion >= 1
              && samples >= 0
              && samples <= ChunkFormat.MAX_SAMPLES
              && chunks >= 0
              && chunks <= Integer.MAX_VALUE
              && dataBytes >= 0
              && namedLabels >= 0
              && namedLabels <= Integer.MAX_VALUE
              && nameBytes >= 0
              && nameBytes <= size
              && slots >= homeSlots
              && slots <= size
              && shapesAt >= 0
              && checksumsAt >= shapesAt
              && checksumsAt <= size;
      return bounded
          && homeSlots == SnapshotFormat.homeSlots(samples)
          && samplesAt == align(HEADER_BYTES + (chunks + 1) * CHUNK_BYTES)
          && namesAt == align(samplesAt + (samples + 1) * SAMPLE_BYTES)
          && orderAt == align(namesAt + nameBytes)
          && indexAt == align(orderAt + samples * 4)
          && labelsAt == align(indexAt + slots * SLOT_BYTES)
          && shapesAt == align(labelsAt + namedLabels * 4)
          && fileBytes == checksumsAt + blocks(checksumsAt) * 4 + FOOTER_BYTES;
    }
  }

  static void writeFooter(
      MemorySegment to, long fileBytes, int headerChecksum, int checksumsChecksum) {
    LittleEndian.putLong(to, 0, fileBytes);
    LittleEndian.putInt(to, 8, headerChecksum);
    LittleEndian.putInt(to, 12, checksumsChecksum);
    LittleEndian.putInt(to, 16, LittleEndian.checksum(to.asSlice(0, 16)));
    LittleEndian.putLong(to, 20, FOOTER_MAGIC);
  }

  static Failure damaged(String where, String how) {
    return Failure.damaged("%s is damaged: %s; 'gristway rebuild' makes it anew", where, how);
  }
}
