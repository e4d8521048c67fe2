package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.gristway.os.Folders;

/**
 * Packing against {@code tar -cf} into a real file, of the same tree, both synced: how long does a
 * user wait until the data is in large files? Times are of whole commands, start-up included.
 */
final class PackBenchmark implements Main.Benchmark {

  @Override
  public void run(Path folder, int rounds) throws IOException, InterruptedException {
    Machine.run(Machine.launcher(), "--version"); // builds it, should it be older than its sources
    System.out.println("| files | cache | tar | gristway pack | tar / pack |");
    System.out.println("|---|---|---|---|---|");
    measure(SmallFiles.make(folder.resolve("small"), 100_000, 10_000), "100,000 × 10 KB", rounds);
    measure(SmallFiles.make(folder.resolve("large"), 10_000, 110_000), "10,000 × 110 KB", rounds);
  }

  private static void measure(Path tree, String name, int rounds)
      throws IOException, InterruptedException {
    for (boolean cold : new boolean[] {true, false}) {
      List<Double> tar = new ArrayList<>();
      List<Double> pack = new ArrayList<>();
      for (int round = 0; round < rounds; round++) {
        tar.add(tar(tree, cold));
        pack.add(pack(tree, cold));
      }
      System.out.printf(
          Locale.ROOT,
          "| %s | %s | %.2f s | %.2f s | %.2f |%n",
          name,
          cold ? "cold" : "warm",
          Machine.median(tar),
          Machine.median(pack),
          Machine.median(tar) / Machine.median(pack));
      System.out.println(
          "  tar " + Machine.spread(tar, "%.2f") + ", pack " + Machine.spread(pack, "%.2f"));
    }
  }

  private static void prepare(Path tree, boolean cold) throws IOException, InterruptedException {
    if (cold) {
      Machine.dropCaches();
    } else {
      Machine.warm(tree);
    }
  }

  private static double tar(Path tree, boolean cold) throws IOException, InterruptedException {
    prepare(tree, cold);
    Path target = tree.resolveSibling("out.tar");
    try {
      return Machine.time(
          "sh", "-c", "tar -cf \"$1\" \"$0\" && sync \"$1\"", tree.toString(), target.toString());
    } finally {
      Files.deleteIfExists(target);
    }
  }

  private static double pack(Path tree, boolean cold) throws IOException, InterruptedException {
    prepare(tree, cold);
    Path target = tree.resolveSibling("out.gw");
    try {
      return Machine.time(Machine.launcher(), "pack", tree.toString(), target.toString());
    } finally {
      Folders.deleteTree(target);
    }
  }
}
