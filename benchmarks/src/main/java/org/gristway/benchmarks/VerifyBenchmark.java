package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.gristway.os.Folders;

/**
 * Verifying against {@code fio} reading the same chunk files with direct I/O, in pieces of the same
 * size. Both read past the page cache, so it is left alone. Ours is the time of the whole command,
 * start-up included; fio's is the rate that it reports itself.
 */
final class VerifyBenchmark implements Main.Benchmark {

  private static final Pattern RATE = Pattern.compile("\"bw_bytes\" : (\\d+)");

  @Override
  public void run(Path folder, int rounds) throws IOException, InterruptedException {
    Machine.require(Machine.FIO);
    Machine.run(Machine.launcher(), "--version");
    System.out.println("| samples | fio, direct | gristway verify | verify / fio |");
    System.out.println("|---|---|---|---|");
    measure(folder, 400_000, 10_000, "400,000 × 10 KB", rounds);
    measure(folder, 80_000, 110_000, "80,000 × 110 KB", rounds);
  }

  private static void measure(Path folder, int files, int size, String name, int rounds)
      throws IOException, InterruptedException {
    Path tree = SmallFiles.make(folder.resolve("tree"), files, size);
    Path dataset = folder.resolve("data.gw");
    Machine.run(Machine.launcher(), "pack", tree.toString(), dataset.toString());
    Folders.deleteTree(tree);
    List<Path> chunks;
    try (Stream<Path> all = Files.list(dataset)) {
      chunks = all.filter(path -> path.toString().endsWith(".gwc")).sorted().toList();
    }
    long bytes = 0;
    for (Path chunk : chunks) {
      bytes += Files.size(chunk);
    }
    List<Double> fio = new ArrayList<>();
    List<Double> verify = new ArrayList<>();
    for (int round = 0; round < rounds; round++) {
      fio.add(fioRate(chunks));
      verify.add(bytes / 1e9 / Machine.time(Machine.launcher(), "verify", dataset.toString()));
    }
    System.out.printf(
        Locale.ROOT,
        "| %s | %.2f GB/s | %.2f GB/s | %.2f |%n",
        name,
        Machine.median(fio),
        Machine.median(verify),
        Machine.median(verify) / Machine.median(fio));
    System.out.println(
        "  fio " + Machine.spread(fio, "%.2f") + ", verify " + Machine.spread(verify, "%.2f"));
    Folders.deleteTree(dataset);
  }

  /** Eight reads of 4 MiB at once, each file once, in order. */
  private static double fioRate(List<Path> chunks) throws IOException, InterruptedException {
    String report =
        Machine.run(
            Machine.FIO,
            "--name=read",
            "--rw=read",
            "--direct=1",
            "--bs=4M",
            "--ioengine=libaio",
            "--iodepth=8",
            "--file_service_type=sequential",
            "--output-format=json",
            "--directory=" + chunks.getFirst().getParent(),
            "--filename="
                + String.join(":", chunks.stream().map(path -> "" + path.getFileName()).toList()));
    Matcher matcher = RATE.matcher(report);
    if (!matcher.find()) {
      throw new IOException("fio reported no rate: " + report);
    }
    return Long.parseLong(matcher.group(1)) / 1e9;
  }
}
