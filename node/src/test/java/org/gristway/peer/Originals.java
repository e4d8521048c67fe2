package org.gristway.peer;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.pack.PackOptions;
import org.gristway.pack.Packer;
import org.gristway.snapshot.Snapshot;

/** A dataset of many small samples, and what it holds. */
final class Originals implements AutoCloseable {

  static final int SAMPLES = 900;

  private static final int LONGEST = 600;

  private final Dataset dataset;
  private final byte[][] bytes = new byte[SAMPLES][];

  private Originals(Dataset dataset) {
    this.dataset = dataset;
    for (int i = 0; i < SAMPLES; i++) {
      bytes[i] = dataset.read(dataset.sample(i));
    }
  }

  static Originals in(Path folder) {
    Path files = folder.resolve("files");
    Path path = folder.resolve("data.gw");
    Random random = new Random(7);
    try {
      Files.createDirectories(files);
      for (int i = 0; i < SAMPLES; i++) {
        byte[] content = new byte[random.nextInt(LONGEST)];
        random.nextBytes(content);
        Files.write(files.resolve("sample" + i), content);
      }
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
    PackOptions chunks = PackOptions.DEFAULT.withChunkSize(64 << 10);
    Packer.pack(List.of(files), path, chunks, Progress.NONE, line -> {});
    return new Originals(Dataset.open(path));
  }

  Path path() {
    return dataset.path();
  }

  Snapshot snapshot() {
    return dataset.snapshot();
  }

  byte[] bytes(long sample) {
    return bytes[(int) sample];
  }

  int longest() {
    return LONGEST;
  }

  @Override
  public void close() {
    dataset.close();
  }
}
