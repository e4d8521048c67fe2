package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.gristway.os.Folders;

/**
 * What reading costs in processor time, all threads of the process and the kernel's part included,
 * after warming up: by direct reads from the disk, from the page cache (the dataset on a memory
 * file system) and from memory (nothing is read any more). And the heap in use, for two dataset
 * sizes.
 */
final class CpuBenchmark implements Main.Benchmark {

  private static final Path PAGE_CACHE = Path.of("/dev/shm");

  @Override
  public void run(Path folder, int rounds) throws IOException, InterruptedException {
    System.out.println(
        "| samples | from | GB a core-second | GB/s | heap | rounds, GB a core-second |");
    System.out.println("|---|---|---|---|---|---|");
    for (int size : new int[] {110_000, 10_000, 1_000}) {
      int files = Math.min(1_000_000, 1_540_000_000 / size);
      Path dataset = folder.resolve("data.gw");
      Path tar = Tars.make(folder.resolve("samples.tar"), files, size);
      Machine.run(Machine.launcher(), "pack", tar.toString(), dataset.toString());
      Files.delete(tar);
      Path cached = Files.createTempDirectory(PAGE_CACHE, "gristway-benchmark-");
      try {
        Machine.run("cp", "-r", dataset.toString(), cached.toString());
        long memory = (long) files * size / 10;
        List<Arm> arms = new ArrayList<>();
        arms.add(arm("direct reads", dataset, "redirect", memory));
        arms.add(arm("page cache", cached.resolve("data.gw"), "redirect", memory));
        arms.add(arm("memory", dataset, "unbounded", memory));
        for (int round = 0; round < rounds; round++) {
          for (Arm arm : arms) {
            arm.measure();
          }
        }
        for (Arm arm : arms) {
          System.out.printf(
              Locale.ROOT,
              "| %,d × %,d bytes | %s | %.2f | %.2f | %.1f MB | %s |%n",
              files,
              size,
              arm.name,
              arm.median("perCpu"),
              arm.median("rate"),
              arm.median("heap") / 1e6,
              arm.spread("perCpu", "%.2f"));
        }
      } finally {
        Folders.deleteTree(cached);
        Folders.deleteTree(dataset);
      }
    }
  }

  private static Arm arm(String name, Path dataset, String policy, long memory) {
    return new Arm(
        name,
        () -> {
          String output =
              Machine.run(
                  Arm.command("read-arm", dataset.toString(), policy, "" + memory, "8", "100", "5")
                      .toArray(String[]::new));
          Map<String, Double> values = Arm.parse(output);
          values.put("perCpu", Arm.value(values, "bytes") / 1e9 / Arm.value(values, "cpu"));
          values.put("rate", Arm.value(values, "bytes") / 1e9 / Arm.value(values, "seconds"));
          return values;
        });
  }
}
