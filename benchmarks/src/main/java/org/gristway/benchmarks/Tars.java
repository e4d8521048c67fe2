package org.gristway.benchmarks;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Random;

/** A tar of many samples of one size, where nobody needs them as files. */
final class Tars {

  private static final int BLOCK = 512;

  private Tars() {}

  static Path make(Path target, int count, int size) throws IOException {
    Random random = new Random(count * 31L + size);
    byte[] noise = new byte[(4 << 20) + size];
    random.nextBytes(noise);
    try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(target), 1 << 20)) {
      for (int i = 0; i < count; i++) {
        out.write(header(String.format(Locale.ROOT, "c%02d/%08d.bin", i % 100, i), size));
        out.write(noise, random.nextInt(4 << 20), size);
        out.write(new byte[(BLOCK - size % BLOCK) % BLOCK]);
      }
      out.write(new byte[2 * BLOCK]);
    }
    return target;
  }

  private static byte[] header(String name, int size) {
    byte[] header = new byte[BLOCK];
    put(header, 0, name);
    put(header, 100, "0000644\0");
    put(header, 108, "0000000\0");
    put(header, 116, "0000000\0");
    put(header, 124, String.format(Locale.ROOT, "%011o\0", size));
    put(header, 136, "00000000000\0");
    put(header, 148, "        ");
    header[156] = '0';
    put(header, 257, "ustar\00000");
    int sum = 0;
    for (byte b : header) {
      sum += b & 0xff;
    }
    put(header, 148, String.format(Locale.ROOT, "%06o\0 ", sum));
    return header;
  }

  private static void put(byte[] header, int at, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(bytes, 0, header, at, bytes.length);
  }
}
