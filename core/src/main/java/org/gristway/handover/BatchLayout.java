package org.gristway.handover;

import java.lang.foreign.MemorySegment;
import org.gristway.chunk.LittleEndian;

/**
 * Where things stand in the area of a batch. All numbers are little-endian.
 *
 * <pre>
 *   0  epoch                     8
 *   8  step                      8
 *  16  rank                      4
 *  20  places, n                 4
 *  24  bytes used of the area    8
 *  32  resident stretch: where   8   in the memory file
 *  40  resident stretch: bytes   8   0 if there is none
 *  64  n records of 48 bytes:
 *        offset in the area      8   or in the resident stretch, if a flag says so
 *        length                  8
 *        sample                  8
 *        planned                 8   the sample that was due: another one if that is damaged
 *        request                 8   the sample that a plain loader would have given
 *        label, -1 if none       4
 *        flags                   4   1 repeat, 2 damaged, 4 of several parts, 8 resident
 *      the samples' bytes, each from a multiple of 8
 * </pre>
 *
 * <p>A repeat may have the offset of another record. A batch is written while nobody else knows of
 * its area, and is complete when the area is published.
 */
public final class BatchLayout {

  /** The place holds a sample that is due elsewhere, or was due before. */
  public static final int REPEAT = 1;

  /** It does so because the sample that was due here is damaged. */
  public static final int DAMAGED = 2;

  /** The sample has more than one part. */
  public static final int PARTS = 4;

  /** The bytes are not in the area: they stand in the resident stretch, to the end of the run. */
  public static final int RESIDENT = 8;

  static final int HEADER_BYTES = 64;
  static final int RECORD_BYTES = 48;
  private static final int ALIGNMENT = 8;

  private BatchLayout() {}

  /** Where the samples' bytes begin, for a batch of so many places. */
  public static long dataAt(int places) {
    return HEADER_BYTES + (long) RECORD_BYTES * places;
  }

  /** Where the next sample may begin after one that ends here. */
  public static long aligned(long end) {
    return (end + ALIGNMENT - 1) & -ALIGNMENT;
  }

  public static void writeHeader(
      MemorySegment area, long epoch, long step, int rank, int places, long used) {
    LittleEndian.putLong(area, 0, epoch);
    LittleEndian.putLong(area, 8, step);
    LittleEndian.putInt(area, 16, rank);
    LittleEndian.putInt(area, 20, places);
    LittleEndian.putLong(area, 24, used);
  }

  /** Says where in the memory file the bytes of samples are that stay. */
  public static void writeResident(MemorySegment area, long offset, long bytes) {
    LittleEndian.putLong(area, 32, offset);
    LittleEndian.putLong(area, 40, bytes);
  }

  public static void writeRecord(
      MemorySegment area,
      int place,
      long offset,
      long length,
      long sample,
      long planned,
      long request,
      int label,
      int flags) {
    long at = dataAt(place);
    LittleEndian.putLong(area, at, offset);
    LittleEndian.putLong(area, at + 8, length);
    LittleEndian.putLong(area, at + 16, sample);
    LittleEndian.putLong(area, at + 24, planned);
    LittleEndian.putLong(area, at + 32, request);
    LittleEndian.putInt(area, at + 40, label);
    LittleEndian.putInt(area, at + 44, flags);
  }

  public static long epoch(MemorySegment area) {
    return LittleEndian.getLong(area, 0);
  }

  public static long step(MemorySegment area) {
    return LittleEndian.getLong(area, 8);
  }

  public static int rank(MemorySegment area) {
    return LittleEndian.getInt(area, 16);
  }

  public static int places(MemorySegment area) {
    return LittleEndian.getInt(area, 20);
  }

  public static long offset(MemorySegment area, int place) {
    return LittleEndian.getLong(area, dataAt(place));
  }

  public static long length(MemorySegment area, int place) {
    return LittleEndian.getLong(area, dataAt(place) + 8);
  }

  public static long sample(MemorySegment area, int place) {
    return LittleEndian.getLong(area, dataAt(place) + 16);
  }

  public static long planned(MemorySegment area, int place) {
    return LittleEndian.getLong(area, dataAt(place) + 24);
  }

  public static long request(MemorySegment area, int place) {
    return LittleEndian.getLong(area, dataAt(place) + 32);
  }

  public static int label(MemorySegment area, int place) {
    return LittleEndian.getInt(area, dataAt(place) + 40);
  }

  public static int flags(MemorySegment area, int place) {
    return LittleEndian.getInt(area, dataAt(place) + 44);
  }
}
