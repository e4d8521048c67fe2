package org.gristway.chunk;

import java.lang.foreign.MemorySegment;
import java.util.HexFormat;

/**
 * Sixteen bytes that tell datasets (or versions of one) apart: the front of a SHA-256. They come
 * from the content alone, so the same sources and seed give the same id.
 */
public record DatasetId(long high, long low) {

  /** The first sixteen bytes of a digest. */
  public static DatasetId of(byte[] digest) {
    MemorySegment bytes = MemorySegment.ofArray(digest);
    return new DatasetId(LittleEndian.getLong(bytes, 0), LittleEndian.getLong(bytes, 8));
  }

  /** 32 hexadecimal digits, in the order in which the bytes stand in files. */
  @Override
  public String toString() {
    HexFormat hex = HexFormat.of();
    return hex.toHexDigits(Long.reverseBytes(high)) + hex.toHexDigits(Long.reverseBytes(low));
  }
}
