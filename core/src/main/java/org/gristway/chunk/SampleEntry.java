package org.gristway.chunk;

import java.nio.charset.StandardCharsets;

/**
 * All that is known of a sample except where it lies: what a chunk's table and a snapshot hold of
 * it. The arrays are the entry's own and are not changed.
 *
 * @param key its path, in UTF-8
 * @param shape the names of its parts
 * @param partEnds where each part ends, counted from the sample's first byte
 * @param label its class number, or -1
 * @param named whether the label's name is the key's first path component
 * @param checksum CRC-32C over the bytes of all its parts
 */
@SuppressWarnings("ArrayRecordComponent") // millions pass by; nobody compares them
public record SampleEntry(
    byte[] key, Shape shape, long[] partEnds, int label, boolean named, int checksum) {

  /** The label of a sample that has none. */
  public static final int NO_LABEL = -1;

  /** Keys are paths; the file systems they come from and go to allow no longer ones. */
  public static final int MAX_KEY = 4095;

  /** The bytes of all parts. */
  public long length() {
    return partEnds[partEnds.length - 1];
  }

  /** The bytes its key and its part ends take in a table: all but the last end, which is known. */
  public int nameBytes() {
    return key.length + 8 * (partEnds.length - 1);
  }

  public String keyText() {
    return new String(key, StandardCharsets.UTF_8);
  }

  /** The same sample with the checksum that its bytes turned out to have. */
  public SampleEntry withChecksum(int value) {
    return new SampleEntry(key, shape, partEnds, label, named, value);
  }
}
