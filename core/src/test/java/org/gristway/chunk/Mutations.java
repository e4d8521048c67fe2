package org.gristway.chunk;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Random;
import java.util.zip.CRC32C;

/**
 * Damage made on purpose: changes to valid files, and the checksums over them put right again, so
 * that readers get to see contradictions that a checksum would otherwise have caught.
 */
public final class Mutations {

  private static final long[] NUMBERS = {
    0,
    1,
    2,
    3,
    7,
    8,
    24,
    40,
    128,
    255,
    256,
    4095,
    4096,
    65535,
    65536,
    1 << 20,
    1 << 24,
    Integer.MAX_VALUE,
    0x8000_0000L,
    0xffff_ffffL,
    1L << 32,
    1L << 47,
    1L << 48,
    1L << 60,
    Long.MAX_VALUE,
    Long.MIN_VALUE,
    -1,
    -2,
    -8,
    -4096
  };

  private static final int LARGEST = 1 << 20; // what a repaired size may make of a small file

  private Mutations() {}

  /** The bytes with one to four random changes. */
  public static byte[] mutate(byte[] valid, Random random) {
    byte[] bytes = valid.clone();
    for (int changes = 1 + random.nextInt(4); changes > 0; changes--) {
      bytes = change(bytes, random);
    }
    return bytes;
  }

  private static byte[] change(byte[] bytes, Random random) {
    if (bytes.length < 16) {
      return Arrays.copyOf(bytes, 200);
    }
    ByteBuffer view = view(bytes);
    boolean front = random.nextInt(3) > 0;
    int at = random.nextInt(front ? Math.min(bytes.length, 700) - 8 : bytes.length - 8);
    int field = random.nextInt(4) > 0 ? at & ~3 : at;
    long number = NUMBERS[random.nextInt(NUMBERS.length)];
    switch (random.nextInt(8)) {
      case 0 -> view.putLong(field, number);
      case 1 -> view.putInt(field, (int) number);
      case 2 -> view.putShort(field, (short) number);
      case 3 -> bytes[at] ^= (byte) (1 + random.nextInt(255));
      case 4 -> view.putLong(field, view.getLong(field) + random.nextInt(17) - 8);
      case 5 -> view.putInt(field, view.getInt(field) + random.nextInt(5) - 2);
      case 6 -> view.putLong(field, view.getLong(random.nextInt(bytes.length - 8)));
      default -> {
        return random.nextInt(4) == 0
            ? Arrays.copyOf(bytes, random.nextInt(bytes.length + 100))
            : bytes;
      }
    }
    return bytes;
  }

  /**
   * The bytes with others in some places: three bytes of {@code patches} are a place and a byte.
   */
  public static byte[] patch(byte[] valid, byte[] patches) {
    byte[] bytes = valid.clone();
    for (int i = 0; i + 2 < patches.length; i += 3) {
      int place = (patches[i] & 0xff) << 8 | patches[i + 1] & 0xff;
      bytes[place % bytes.length] = patches[i + 2];
    }
    return bytes;
  }

  /** Makes a chunk's sizes and checksums agree with the rest of it, as far as that can be. */
  public static byte[] repairChunk(byte[] bytes) {
    byte[] repaired = Arrays.copyOf(bytes, Math.max(bytes.length, 4096 + 24));
    ByteBuffer view = view(repaired);
    view.putLong(0, ChunkFormat.MAGIC);
    long samples = view.getLong(48);
    long shapes = view.getLong(56);
    long names = view.getLong(64);
    long data = view.getLong(72);
    if (isSmall(samples) && isSmall(shapes) && isSmall(names) && isSmall(data)) {
      long offset = ChunkFormat.dataOffset(samples, shapes, names);
      long size = offset + data + ChunkFormat.FOOTER_BYTES;
      if (isSmall(size)) {
        repaired = Arrays.copyOf(repaired, (int) size);
        view = view(repaired);
        view.putLong(80, offset);
        view.putLong(88, size);
        view.putInt(96, checksum(repaired, 128, (int) offset - 128));
      }
    }
    view.putInt(124, checksum(repaired, 0, 124));
    int footer = repaired.length - ChunkFormat.FOOTER_BYTES;
    view.putLong(footer, repaired.length);
    view.putInt(footer + 8, view.getInt(124));
    view.putInt(footer + 12, checksum(repaired, footer, 12));
    view.putLong(footer + 16, ChunkFormat.FOOTER_MAGIC);
    return repaired;
  }

  /** Makes a snapshot's checksums agree with the rest of it, as far as that can be. */
  public static byte[] repairSnapshot(byte[] bytes) {
    byte[] repaired = Arrays.copyOf(bytes, Math.max(bytes.length, 400));
    ByteBuffer view = view(repaired);
    view.putLong(0, ChunkFormat.magic("GWSNAPS\n"));
    view.putLong(160, repaired.length);
    long checksumsAt = view.getLong(152);
    int footer = repaired.length - 28;
    view.putInt(252, checksum(repaired, 0, 252));
    if (checksumsAt >= 256 && checksumsAt < footer) {
      int at = (int) checksumsAt;
      for (int block = 0; block << 16 < checksumsAt && at + 4 <= footer; block++, at += 4) {
        int length = (int) Math.min(1 << 16, checksumsAt - ((long) block << 16));
        view.putInt(at, checksum(repaired, block << 16, length));
      }
      int blocks = (int) ((checksumsAt + 0xffff) >>> 16);
      if (checksumsAt + 4L * blocks <= footer) {
        view.putInt(footer + 12, checksum(repaired, (int) checksumsAt, 4 * blocks));
      }
    }
    view.putLong(footer, repaired.length);
    view.putInt(footer + 8, view.getInt(252));
    view.putInt(footer + 16, checksum(repaired, footer, 16));
    view.putLong(footer + 20, ChunkFormat.magic("GWSFOOT\n"));
    return repaired;
  }

  private static boolean isSmall(long size) {
    return size >= 0 && size <= LARGEST;
  }

  private static ByteBuffer view(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static int checksum(byte[] bytes, int from, int length) {
    CRC32C checksum = new CRC32C();
    checksum.update(bytes, from, length);
    return (int) checksum.getValue();
  }
}
