package org.gristway.os;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.MemorySegment;

/**
 * What the system knows about a file.
 *
 * @param type what it is
 * @param isReadableByAll whether its mode lets its owner, its group and all others read it
 * @param size its length in bytes
 * @param modified when its content last changed, in nanoseconds since 1970
 * @param device the file system it is on; with {@code inode} its identity
 * @param inode its number there
 */
public record FileStatus(
    Type type, boolean isReadableByAll, long size, long modified, long device, long inode) {

  /** The kinds that matter to us. */
  public enum Type {
    FILE,
    FOLDER,
    LINK,
    OTHER
  }

  /** True if both are the same file, whatever it is called. */
  public boolean isSameFileAs(FileStatus other) {
    return device == other.device && inode == other.inode;
  }

  /** True if the file's content has not changed between the two looks at it. */
  public boolean isSameContentAs(long size, long modified) {
    return this.size == size && this.modified == modified;
  }

  /** Reads a {@code struct statx}, whose layout is the same on every architecture. */
  static FileStatus fromStatx(MemorySegment statx) {
    int mode = Short.toUnsignedInt(statx.get(JAVA_SHORT_UNALIGNED, 28));
    Type type =
        switch (mode & 0xf000) {
          case 0x8000 -> Type.FILE;
          case 0x4000 -> Type.FOLDER;
          case 0xa000 -> Type.LINK;
          default -> Type.OTHER;
        };
    long seconds = statx.get(JAVA_LONG_UNALIGNED, 112);
    long nanos = Integer.toUnsignedLong(statx.get(JAVA_INT_UNALIGNED, 120));
    long device =
        ((long) statx.get(JAVA_INT_UNALIGNED, 136) << 32)
            | Integer.toUnsignedLong(statx.get(JAVA_INT_UNALIGNED, 140));
    return new FileStatus(
        type,
        (mode & 0444) == 0444,
        statx.get(JAVA_LONG_UNALIGNED, 40),
        seconds * 1_000_000_000L + nanos,
        device,
        statx.get(JAVA_LONG_UNALIGNED, 32));
  }
}
