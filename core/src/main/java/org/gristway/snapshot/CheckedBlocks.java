package org.gristway.snapshot;

import static org.gristway.snapshot.SnapshotFormat.BLOCK_BYTES;
import static org.gristway.snapshot.SnapshotFormat.BLOCK_SHIFT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.gristway.chunk.LittleEndian;
import org.gristway.os.MappedPages;
import org.gristway.os.PrivateMemory;

/**
 * A mapped file in blocks, each of which is held against its checksum when it is first touched. Any
 * thread may ask until the arena of the mapping is closed.
 *
 * <p>A short look-up may trust a block that has passed its checksum once. For a run that lasts for
 * days that is not enough: the file may be written over, and a page that comes back from a rotten
 * medium is not what it was. So blocks may be made to <em>hold</em>: the front of the file, which
 * is asked for all the time, is copied as it passes and read from the copy only. Of the rest there
 * is a checksum for each {@link #PIECE} bytes, taken as a block passes, and what is asked for by
 * {@link #bytes} is copied and held against these each time.
 */
final class CheckedBlocks {

  /** Small enough to be checked for one key, large enough for its checksum to cost no memory. */
  private static final int PIECE_SHIFT = 9;

  private static final int PIECE = 1 << PIECE_SHIFT;

  private static final VarHandle BYTE = ValueLayout.JAVA_BYTE.varHandle();

  private final String where;
  private final Arena arena;
  private final MemorySegment file;
  private final MemorySegment checksums; // of the blocks; not in the file, which may change
  private final long bytes;
  private final long held; // bytes of the front that are copied: whole blocks, or all
  private final MemorySegment front; // the copy; the file itself if nothing is held
  private final MemorySegment pieces; // a checksum each, of what is not in the copy; empty if none
  private final MemorySegment checked; // a byte a block: 1 once it has passed, and is copied

  /**
   * @param checksums of all blocks, in memory that nobody changes
   * @param bytes of the file that are in blocks
   */
  CheckedBlocks(
      String where, Arena arena, MemorySegment file, MemorySegment checksums, long bytes) {
    this(where, arena, file, checksums, bytes, 0);
  }

  private CheckedBlocks(
      String where,
      Arena arena,
      MemorySegment file,
      MemorySegment checksums,
      long bytes,
      long held) {
    this.where = where;
    this.arena = arena;
    this.file = file;
    this.checksums = checksums;
    this.bytes = bytes;
    this.held = held;
    this.front = held == 0 ? file : PrivateMemory.until(arena, held);
    this.pieces =
        held == 0 || held == bytes
            ? MemorySegment.NULL
            : PrivateMemory.until(arena, 4 * ((bytes - held + PIECE - 1) >>> PIECE_SHIFT));
    this.checked = arena.allocate(SnapshotFormat.blocks(bytes));
  }

  /** The same blocks, which hold: the front up to a byte in a copy, the rest by checksums. */
  CheckedBlocks holding(long front) {
    long whole = SnapshotFormat.blocks(front) << BLOCK_SHIFT;
    return new CheckedBlocks(where, arena, file, checksums, bytes, Math.min(whole, bytes));
  }

  boolean isHolding() {
    return held > 0;
  }

  /** A part of the mapped file, after its blocks have passed. It may change after that. */
  MemorySegment touch(long offset, long length) {
    if (length > 0) {
      ensureChecked(offset, length);
    }
    return file.asSlice(offset, length);
  }

  /** A number of the mapped file, which may have changed since its block has passed. */
  int lookUp(long offset) {
    ensureChecked(offset, 4);
    return LittleEndian.getInt(file, offset);
  }

  /** A number of the front. */
  long number(long offset) {
    ensureChecked(offset, 8);
    return LittleEndian.getLong(front, offset);
  }

  /** A number of the front. */
  int smallNumber(long offset) {
    ensureChecked(offset, 4);
    return LittleEndian.getInt(front, offset);
  }

  /** A copy of any part; where blocks hold, it is what has passed at first. */
  byte[] bytes(long offset, int length) {
    byte[] copy = new byte[length];
    if (length == 0) {
      return copy;
    }
    ensureChecked(offset, length);
    MemorySegment target = MemorySegment.ofArray(copy);
    long end = offset + length;
    long behind = Math.max(offset, held);
    if (offset < behind) {
      MemorySegment.copy(front, offset, target, 0, Math.min(end, behind) - offset);
    }
    if (!isHolding()) {
      copyOut(offset, target);
    } else if (behind < end) {
      copyPieces(behind, end, target.asSlice(behind - offset));
    }
    return copy;
  }

  private void copyPieces(long from, long to, MemorySegment target) {
    MemorySegment piece = MemorySegment.ofArray(new byte[PIECE]);
    for (long at = from; at < to; ) {
      long number = (at - held) >>> PIECE_SHIFT;
      long start = held + (number << PIECE_SHIFT);
      long end = Math.min(start + PIECE, bytes);
      MemorySegment whole = piece.asSlice(0, end - start);
      copyOut(start, whole);
      if (LittleEndian.checksum(whole) != pieces.get(ValueLayout.JAVA_INT, 4 * number)) {
        throw SnapshotFormat.damaged(
            where, "bytes " + start + " to " + end + " have changed since it was opened");
      }
      long count = Math.min(end, to) - at;
      MemorySegment.copy(whole, at - start, target, at - from, count);
      at += count;
    }
  }

  /** Checks every block of the file, also those that have passed before. */
  void checkAll() {
    for (long block = 0; block < SnapshotFormat.blocks(bytes); block++) {
      copyOfBlock(block);
      if (!isHolding()) {
        BYTE.setRelease(checked, block, (byte) 1);
      }
    }
  }

  /**
   * Returns when the blocks of a stretch have passed. The common case, one block that has, is small
   * enough to vanish in its callers.
   */
  void ensureChecked(long offset, long length) {
    long first = offset >>> BLOCK_SHIFT;
    long last = (offset + length - 1) >>> BLOCK_SHIFT;
    if (first != last || (byte) BYTE.getAcquire(checked, first) == 0) {
      for (long block = first; block <= last; block++) {
        check(block);
      }
    }
  }

  /** One at a time: what has passed, and may be in use, is not copied anew. */
  private synchronized void check(long block) {
    if ((byte) BYTE.getAcquire(checked, block) != 0) {
      return;
    }
    MemorySegment copy = copyOfBlock(block);
    long start = block << BLOCK_SHIFT;
    if (start < held) {
      MemorySegment.copy(copy, 0, front, start, copy.byteSize());
      // Nobody asks the file for these again, and twice would be too much for a large dataset.
      MappedPages.forget(file.asSlice(start, copy.byteSize()));
    } else if (isHolding()) {
      long first = (start - held) >>> PIECE_SHIFT;
      for (long at = 0; at < copy.byteSize(); at += PIECE) {
        MemorySegment piece = copy.asSlice(at, Math.min(PIECE, copy.byteSize() - at));
        long number = first + (at >>> PIECE_SHIFT);
        pieces.set(ValueLayout.JAVA_INT, 4 * number, LittleEndian.checksum(piece));
      }
    }
    BYTE.setRelease(checked, block, (byte) 1);
  }

  /** What is in the file now, if it passes. */
  private MemorySegment copyOfBlock(long block) {
    long start = block << BLOCK_SHIFT;
    long end = Math.min(start + BLOCK_BYTES, bytes);
    MemorySegment copy = MemorySegment.ofArray(new byte[(int) (end - start)]);
    copyOut(start, copy);
    if (LittleEndian.checksum(copy) != LittleEndian.getInt(checksums, 4 * block)) {
      throw SnapshotFormat.damaged(where, "bytes " + start + " to " + end + " fail their checksum");
    }
    return copy;
  }

  /**
   * Copies from the mapped file. Nothing else is done with mapped memory where that can be avoided:
   * should somebody cut the file off under us, a copy fails with an error that can be caught, while
   * a checksum over mapped memory takes the whole process down.
   */
  private void copyOut(long from, MemorySegment to) {
    try {
      MemorySegment.copy(file, from, to, 0, to.byteSize());
    } catch (InternalError cutOff) {
      throw SnapshotFormat.damaged(where, "it was cut off while it was read");
    }
  }
}
