package org.gristway.cli;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;

/**
 * Tells in a few bytes whether two epochs have the same order. A rank's stream is, for each batch,
 * the number of its places and then the sample of each, or its complement where the sample is a
 * repeat; 8 bytes each, little-endian. An epoch's digest is that of its ranks' digests, in their
 * order. It is all SHA-256, and nothing else enters: not a seed, a time or a name.
 *
 * <p>For the stream of one rank, and one thread.
 */
final class OrderDigest {

  private static final int BUFFER = 8 << 10;

  private final MessageDigest digest = sha256();
  private final ByteBuffer buffer = ByteBuffer.allocate(BUFFER).order(ByteOrder.LITTLE_ENDIAN);

  /** A batch begins. */
  void batch(int places) {
    add(places);
  }

  /** The next place of the batch: the sample that the plan has there, damaged or not. */
  void place(long sample, boolean isRepeat) {
    add(isRepeat ? ~sample : sample);
  }

  private void add(long value) {
    if (!buffer.hasRemaining()) {
      drain();
    }
    buffer.putLong(value);
  }

  private void drain() {
    digest.update(buffer.array(), 0, buffer.position());
    buffer.clear();
  }

  /** Ends the rank's epoch; the next one begins. */
  byte[] end() {
    drain();
    return digest.digest();
  }

  /** An epoch's digest. */
  static String of(List<byte[]> ranks) {
    MessageDigest digest = sha256();
    ranks.forEach(digest::update);
    return HexFormat.of().formatHex(digest.digest());
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException("every Java has SHA-256", impossible);
    }
  }
}
