package org.gristway.cli;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.SplittableRandom;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/**
 * Small pictures of simple shapes, the same on every machine. They are PNG files written by hand:
 * the JDK's own image code takes longer to start than the whole demo.
 */
final class DemoImages {

  /** What there are pictures of. */
  static final List<String> CLASSES = List.of("checks", "cross", "disc", "ring", "stripes");

  static final int SIDE = 64;
  private static final byte[] SIGNATURE = {(byte) 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

  private DemoImages() {}

  /** The bytes of a PNG file. */
  static byte[] png(int classNumber, int number) {
    SplittableRandom random = new SplittableRandom(1000L * number + classNumber);
    int shape = random.nextInt(0x1000000);
    int ground = ~shape & 0xffffff; // as unlike it as can be
    double x = SIDE * random.nextDouble(0.35, 0.65);
    double y = SIDE * random.nextDouble(0.35, 0.65);
    double size = SIDE * random.nextDouble(0.15, 0.3);
    byte[] rows = new byte[SIDE * (1 + 3 * SIDE)];
    int at = 0;
    for (int row = 0; row < SIDE; row++) {
      rows[at++] = 0; // the row is not filtered
      for (int column = 0; column < SIDE; column++) {
        int color = covers(classNumber, column - x, row - y, size) ? shape : ground;
        long noise = random.nextLong(); // which is what makes the files as large as photographs
        for (int shift = 16; shift >= 0; shift -= 8) {
          int noisy = (color >> shift & 0xff) + (int) (noise >> shift & 0x3f) - 32;
          rows[at++] = (byte) Math.clamp(noisy, 0, 255);
        }
      }
    }
    return file(rows);
  }

  private static boolean covers(int classNumber, double x, double y, double size) {
    return switch (CLASSES.get(classNumber)) {
      case "checks" -> (Math.floor(x / size) + Math.floor(y / size)) % 2 == 0;
      case "cross" -> Math.min(Math.abs(x), Math.abs(y)) < size / 3;
      case "disc" -> Math.hypot(x, y) < size;
      case "ring" -> Math.abs(Math.hypot(x, y) - size) < size / 3;
      default -> Math.floor((x + y) / size) % 2 == 0;
    };
  }

  private static byte[] file(byte[] rows) {
    ByteArrayOutputStream file = new ByteArrayOutputStream();
    file.writeBytes(SIGNATURE);
    ByteBuffer header = ByteBuffer.allocate(13).putInt(SIDE).putInt(SIDE);
    header.put((byte) 8).put((byte) 2); // 8 bits each of red, green and blue
    writeBlock(file, "IHDR", header.array(), 13);
    byte[] packed = new byte[rows.length + 1024];
    try (Deflater deflater = new Deflater(Deflater.BEST_SPEED)) {
      deflater.setStrategy(Deflater.HUFFMAN_ONLY); // in noise nothing repeats
      deflater.setInput(rows);
      deflater.finish();
      int length = 0;
      while (!deflater.finished()) { // the first call may only set the strategy
        length += deflater.deflate(packed, length, packed.length - length);
      }
      writeBlock(file, "IDAT", packed, length);
    }
    writeBlock(file, "IEND", new byte[0], 0);
    return file.toByteArray();
  }

  private static void writeBlock(ByteArrayOutputStream file, String type, byte[] data, int length) {
    ByteBuffer block = ByteBuffer.allocate(12 + length).putInt(length);
    block.put(type.getBytes(StandardCharsets.US_ASCII)).put(data, 0, length);
    CRC32 checksum = new CRC32();
    checksum.update(block.array(), 4, 4 + length);
    file.writeBytes(block.putInt((int) checksum.getValue()).array());
  }
}
