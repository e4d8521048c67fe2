package org.gristway.snapshot;

import static org.gristway.snapshot.SnapshotFormat.BLOCK_BYTES;
import static org.gristway.snapshot.SnapshotFormat.BLOCK_SHIFT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.gristway.chunk.LittleEndian;

/**
 * A mapped file in blocks, each of which is held against its checksum when it is first touched. The
 * checksums stand behind the blocks. Any thread may ask until the arena of the mapping is closed.
 */
final class CheckedBlocks {

  private final String where;
  private final MemorySegment file;
  private final long checksumsAt;
  private final MemorySegment checked; // a byte a block: 1 once it has passed

  CheckedBlocks(String where, Arena arena, MemorySegment file, long checksumsAt) {
    this.where = where;
    this.file = file;
    this.checksumsAt = checksumsAt;
    this.checked = arena.allocate(SnapshotFormat.blocks(checksumsAt));
  }

  /** The part of the file asked for, after its blocks have passed their checksums. */
  MemorySegment touch(long offset, long length) {
    if (length > 0) {
      ensureChecked(offset, length);
    }
    return file.asSlice(offset, length);
  }

  long number(long offset) {
    ensureChecked(offset, 8);
    return LittleEndian.getLong(file, offset);
  }

  int smallNumber(long offset) {
    ensureChecked(offset, 4);
    return LittleEndian.getInt(file, offset);
  }

  /** Checks every block, also those that have passed before. */
  void checkAll() {
    for (long block = 0; block < SnapshotFormat.blocks(checksumsAt); block++) {
      check(block);
    }
  }

  /**
   * Returns when the blocks of a stretch have passed. The common case, one block that has, is small
   * enough to vanish in its callers.
   */
  void ensureChecked(long offset, long length) {
    long first = offset >>> BLOCK_SHIFT;
    long last = (offset + length - 1) >>> BLOCK_SHIFT;
    if (first != last || checked.get(ValueLayout.JAVA_BYTE, first) == 0) {
      checkUnchecked(first, last);
    }
  }

  private void checkUnchecked(long first, long last) {
    for (long block = first; block <= last; block++) {
      if (checked.get(ValueLayout.JAVA_BYTE, block) == 0) {
        check(block);
      }
    }
  }

  private void check(long block) {
    long start = block << BLOCK_SHIFT;
    long end = Math.min(start + BLOCK_BYTES, checksumsAt);
    int expected = LittleEndian.getInt(file, checksumsAt + 4 * block);
    // Copied first: should somebody cut the file off under us, a copy fails with an error that can
    // be caught, while a checksum over mapped memory takes the whole process down.
    MemorySegment copy = MemorySegment.ofArray(new byte[(int) (end - start)]);
    MemorySegment.copy(file, start, copy, 0, end - start);
    if (LittleEndian.checksum(copy) != expected) {
      throw SnapshotFormat.damaged(where, "bytes " + start + " to " + end + " fail their checksum");
    }
    checked.set(ValueLayout.JAVA_BYTE, block, (byte) 1); // twice by two threads does no harm
  }
}
