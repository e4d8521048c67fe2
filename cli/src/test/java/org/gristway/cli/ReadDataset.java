package org.gristway.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.Extent;
import org.gristway.dataset.Dataset;

/**
 * A small dataset that is the same wherever it is packed, with samples of many lengths: none, more
 * than an extent, and a name that must be escaped among them.
 */
record ReadDataset(Path path) {

  static final int SAMPLES = 500;

  static final int BATCH = 32;

  /** Of 16 frames: the largest sample fits none. */
  static final long MEMORY = 256 << 10;

  private static final List<String> OPTIONS =
      List.of("--memory", "256KiB", "--extent", "16KiB", "--batch-size", "32");

  private static final int LARGE = 123;
  private static final int EMPTY = 321;
  private static final int ODD = 400;

  /** Packs it. */
  static ReadDataset pack(Path folder) throws IOException {
    Path source = folder.resolve("read-source");
    for (int i = 0; i < SAMPLES; i++) {
      Path file = source.resolve("class" + i % 5 + "/" + name(i));
      Files.createDirectories(file.getParent());
      Files.write(file, bytes(i));
    }
    Path dataset = folder.resolve("read.gw");
    Cli.run("pack", "--chunk-size", "64KiB", source, dataset).isDone();
    return new ReadDataset(dataset);
  }

  private static String name(int i) {
    return i == ODD ? "tab\tnewline\nbackslash\\" : String.format("%04d.bin", i);
  }

  private static byte[] bytes(int i) {
    int length =
        switch (i) {
          case LARGE -> 40_000;
          case EMPTY -> 0;
          default -> 100 + i * 7919 % 5000;
        };
    byte[] bytes = new byte[length];
    for (int j = 0; j < length; j++) {
      bytes[j] = (byte) (31 * i + j);
    }
    return bytes;
  }

  /** A call about it with little memory and small batches, unless the options say otherwise. */
  Object[] call(String command, Object... options) {
    List<Object> call = new ArrayList<>(List.of(command, path));
    for (int i = 0; i < OPTIONS.size(); i += 2) {
      if (!Arrays.asList(options).contains(OPTIONS.get(i))) {
        call.addAll(OPTIONS.subList(i, i + 2));
      }
    }
    call.addAll(Arrays.asList(options));
    return call.toArray();
  }

  /** Reads it as {@link #call} does. */
  Cli.Result read(Object... options) {
    return Cli.run(call("read", options));
  }

  /** Its keys, as listings escape them. */
  List<String> keys() {
    return Cli.run("ls", path).isDone().outText().lines().toList();
  }

  long bytes() {
    try (Dataset dataset = Dataset.open(path)) {
      return dataset.snapshot().dataBytes();
    }
  }

  /** A copy of it. */
  ReadDataset copy(Path target) throws IOException {
    Files.createDirectory(target);
    try (Stream<Path> files = Files.list(path)) {
      for (Path file : files.filter(f -> !f.getFileName().toString().startsWith(".")).toList()) {
        Files.copy(file, target.resolve(file.getFileName()));
      }
    }
    return new ReadDataset(target);
  }

  /** Changes a byte of a sample; the chunk that holds it. */
  Path damage(String key) {
    try (Dataset dataset = Dataset.open(path)) {
      Extent location = dataset.snapshot().location(dataset.snapshot().find(key));
      Path chunk = path.resolve(ChunkFormat.fileName(location.chunk()));
      try (FileChannel file =
          FileChannel.open(chunk, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        long at = location.offset() + location.length() / 2;
        ByteBuffer one = ByteBuffer.allocate(1);
        file.read(one, at);
        one.put(0, (byte) (one.get(0) ^ 1)).rewind();
        file.write(one, at);
      }
      return chunk;
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }
}
