package org.gristway.chunk;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;

/** How numbers and checksums stand in our files: little-endian, at any offset, CRC-32C. */
public final class LittleEndian {

  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle ARRAY_LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private LittleEndian() {}

  public static int getShort(MemorySegment from, long at) {
    return Short.toUnsignedInt(from.get(SHORT, at));
  }

  public static int getInt(MemorySegment from, long at) {
    return from.get(INT, at);
  }

  public static long getUnsignedInt(MemorySegment from, long at) {
    return Integer.toUnsignedLong(from.get(INT, at));
  }

  public static long getLong(MemorySegment from, long at) {
    return from.get(LONG, at);
  }

  public static void putShort(MemorySegment to, long at, int value) {
    to.set(SHORT, at, (short) value);
  }

  public static void putInt(MemorySegment to, long at, int value) {
    to.set(INT, at, value);
  }

  public static void putLong(MemorySegment to, long at, long value) {
    to.set(LONG, at, value);
  }

  /** True if the bytes at an offset are these. Short keys: a call per key would cost more. */
  public static boolean equals(MemorySegment from, long at, byte[] bytes) {
    int i = 0;
    for (; i + 8 <= bytes.length; i += 8) {
      if (from.get(LONG, at + i) != (long) ARRAY_LONG.get(bytes, i)) {
        return false;
      }
    }
    for (; i < bytes.length; i++) {
      if (from.get(ValueLayout.JAVA_BYTE, at + i) != bytes[i]) {
        return false;
      }
    }
    return true;
  }

  /** CRC-32C of native memory or of a segment over a byte array. */
  public static int checksum(MemorySegment bytes) {
    CRC32C checksum = new CRC32C();
    // A ByteBuffer spans 2 GiB at most.
    long size = bytes.byteSize();
    for (long at = 0; at < size; at += 1 << 30) {
      checksum.update(bytes.asSlice(at, Math.min(1 << 30, size - at)).asByteBuffer());
    }
    return (int) checksum.getValue();
  }
}
