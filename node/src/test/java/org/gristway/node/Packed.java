package org.gristway.node;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.pack.PackOptions;
import org.gristway.pack.Packer;
import org.gristway.read.Loader;

/** A small dataset, how a client asks for it, and what it must get. */
public final class Packed {

  static final int SAMPLES = 203;

  private static final PackOptions SMALL_CHUNKS = PackOptions.DEFAULT.withChunkSize(64 << 10);

  private final Path path;

  private Packed(Path path) {
    this.path = path;
  }

  /** Packs files of up to 2,000 bytes. */
  public static Packed in(Path folder) {
    return in(folder, 0);
  }

  /** The same, with files of the same names and sizes, and a content for each number. */
  static Packed in(Path folder, int content) {
    Path files = folder.resolve("files");
    Path path = folder.resolve("data.gw");
    Random random = new Random(7);
    try {
      for (int i = 0; i < SAMPLES; i++) {
        Path file = files.resolve("class" + i % 3).resolve(String.format("%03d.bin", i));
        Files.createDirectories(file.getParent());
        byte[] bytes = new byte[random.nextInt(2000)];
        random.nextBytes(bytes);
        for (int at = 0; at < bytes.length; at++) {
          bytes[at] ^= (byte) content;
        }
        Files.write(file, bytes);
      }
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
    Packer.pack(List.of(files), path, SMALL_CHUNKS.withForce(true), Progress.NONE, line -> {});
    return new Packed(path);
  }

  public Path path() {
    return path;
  }

  /** The text of settings, in which those that are given stand for the usual ones. */
  String text(String... changes) {
    List<String> lines = new ArrayList<>();
    for (String line :
        List.of(
            "path=" + path,
            "mode=stream",
            "policy=redirect",
            "memory=65536",
            "batch=7",
            "seed=3",
            "extent=8192",
            "tail=short",
            "strict=false",
            "max-damage=0.001",
            "storage-timeout=30",
            "ranks=1",
            "ranks-here=1",
            "nodes=1",
            "node=0",
            "exchange=0",
            "window=2",
            "meet=",
            "listen=127.0.0.1",
            "job=test",
            "homes=afresh",
            "cache=0",
            "cache-disk=0",
            "handover=0",
            "cache-folder=")) {
      String name = line.substring(0, line.indexOf('=') + 1);
      lines.add(Stream.of(changes).filter(each -> each.startsWith(name)).findFirst().orElse(line));
    }
    return String.join("\n", lines) + "\n";
  }

  Settings settings(String... changes) {
    return new Settings(text(changes), "", new byte[0]);
  }

  /** The samples of a rank's batches, by epoch and step, as a loader gives them. */
  List<List<List<Long>>> order(Settings settings, int rank, int epochs) {
    List<List<List<Long>>> order = new ArrayList<>();
    try (Dataset dataset = Dataset.open(path);
        Loader loader = Loader.open(path, settings.options(rank, dataset.snapshot()))) {
      for (int epoch = 0; epoch < epochs; epoch++) {
        List<List<Long>> batches = new ArrayList<>();
        for (Batch batch : loader.epoch(rank)) {
          batches.add(samples(batch, 0, batch.size()));
        }
        order.add(batches);
      }
    }
    return order;
  }

  static List<Long> samples(Batch batch, int first, int count) {
    return LongStream.range(first, first + count).mapToObj(i -> batch.sample((int) i)).toList();
  }

  static List<Long> samples(List<Piece> pieces) {
    return pieces.stream()
        .flatMap(piece -> samples(piece.memory().batch, piece.first(), piece.count()).stream())
        .toList();
  }

  /** Flips a byte of the sample with the most bytes. */
  void damage() {
    try (Dataset dataset = Dataset.open(path)) {
      long longest =
          LongStream.range(0, dataset.size())
              .boxed()
              .max(java.util.Comparator.comparingLong(i -> dataset.snapshot().location(i).length()))
              .orElseThrow();
      var location = dataset.snapshot().location(longest);
      Path chunk = path.resolve(org.gristway.chunk.ChunkFormat.fileName(location.chunk()));
      byte[] bytes = Files.readAllBytes(chunk);
      bytes[(int) location.offset() + 100] ^= 1;
      Files.write(chunk, bytes);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** The memory files of ours that this process has open. */
  static List<String> memoryFiles() {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.map(Packed::target)
          .filter(name -> name.startsWith("/memfd:gristway"))
          .sorted()
          .toList();
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  private static String target(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (IOException closed) {
      return "";
    }
  }

  /** A bit a sample, as a client sends them. */
  static byte[] set(long... samples) {
    byte[] bits = new byte[(SAMPLES + 7) / 8];
    Arrays.stream(samples).forEach(i -> bits[(int) (i >>> 3)] |= (byte) (1 << (i & 7)));
    return bits;
  }

  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
