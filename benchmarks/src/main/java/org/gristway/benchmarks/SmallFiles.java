package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Random;

/** A tree of small files in a hundred class folders, incompressible, the same on every run. */
final class SmallFiles {

  private SmallFiles() {}

  static Path make(Path folder, int files, int size) throws IOException {
    Random random = new Random(files * 31L + size);
    byte[] noise = new byte[4 << 20];
    random.nextBytes(noise);
    byte[] content = new byte[size];
    for (int i = 0; i < files; i++) {
      Path parent = folder.resolve(String.format(Locale.ROOT, "class-%03d", i * 100L / files));
      if (i % Math.max(1, files / 100) == 0) {
        Files.createDirectories(parent);
      }
      System.arraycopy(noise, random.nextInt(noise.length - size), content, 0, size);
      Files.write(parent.resolve(String.format(Locale.ROOT, "%08d.jpg", i)), content);
    }
    return folder;
  }
}
