package org.gristway.spool;

import java.util.Arrays;

/**
 * A growing byte array that records are written to and read from: numbers in a variable number of
 * bytes (seven bits each, lowest first), and byte strings after their length.
 */
public final class RecordBuffer {

  private byte[] bytes;
  private int start;
  private int position;
  private int end;

  public RecordBuffer() {
    this.bytes = new byte[256];
  }

  /** Forgets what it holds, to write a new record. */
  public RecordBuffer clear() {
    start = 0;
    position = 0;
    end = 0;
    return this;
  }

  /** Reads the given bytes from now on; they are not copied. */
  public RecordBuffer wrap(byte[] array, int offset, int length) {
    bytes = array;
    start = offset;
    position = offset;
    end = offset + length;
    return this;
  }

  public byte[] array() {
    return bytes;
  }

  /** Where in {@link #array()} the record begins. */
  public int offset() {
    return start;
  }

  /** How many bytes the record has. */
  public int length() {
    return end - start;
  }

  /** True while there is more to read. */
  public boolean hasMore() {
    return position < end;
  }

  public RecordBuffer putNumber(long value) {
    reserve(10);
    while ((value & ~0x7fL) != 0) {
      bytes[end++] = (byte) (value | 0x80);
      value >>>= 7;
    }
    bytes[end++] = (byte) value;
    return this;
  }

  public RecordBuffer putBytes(byte[] source) {
    putNumber(source.length);
    reserve(source.length);
    System.arraycopy(source, 0, bytes, end, source.length);
    end += source.length;
    return this;
  }

  /** Another record, after its length. */
  RecordBuffer putBytes(RecordBuffer record) {
    putNumber(record.length());
    reserve(record.length());
    System.arraycopy(record.bytes, record.start, bytes, end, record.length());
    end += record.length();
    return this;
  }

  /** Gives its memory back. */
  void free() {
    clear();
    bytes = new byte[0];
  }

  /** Where in {@link #array()} the next thing to read is. */
  int position() {
    return position;
  }

  /** True if a number ends within these bytes. */
  static boolean isWholeNumber(byte[] bytes, int from, int to) {
    for (int i = from; i < to; i++) {
      if (bytes[i] >= 0) {
        return true;
      }
    }
    return false;
  }

  /** Eight bytes, highest first: compares as bytes the way the (unsigned) numbers compare. */
  public RecordBuffer putSortable(long value) {
    reserve(8);
    for (int shift = 56; shift >= 0; shift -= 8) {
      bytes[end++] = (byte) (value >>> shift);
    }
    return this;
  }

  public long takeNumber() {
    long value = 0;
    for (int shift = 0; ; shift += 7) {
      byte next = bytes[position++];
      value |= (long) (next & 0x7f) << shift;
      if (next >= 0) {
        return value;
      }
    }
  }

  public byte[] takeBytes() {
    int length = (int) takeNumber();
    byte[] result = Arrays.copyOfRange(bytes, position, position + length);
    position += length;
    return result;
  }

  public long takeSortable() {
    long value = 0;
    for (int i = 0; i < 8; i++) {
      value = value << 8 | bytes[position++] & 0xff;
    }
    return value;
  }

  private void reserve(int count) {
    if (bytes.length - end < count) {
      bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, end + count));
    }
  }
}
