package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.gristway.Failure;

/** What arms are run on and by: processes, the page cache, medians. */
final class Machine {

  /** What others measure storage with. */
  static final String FIO = "fio";

  private static final Path DROP_CACHES = Path.of("/proc/sys/vm/drop_caches");

  private Machine() {}

  static String describe() throws IOException {
    String memory = Files.readAllLines(Path.of("/proc/meminfo")).getFirst().replaceAll("\\D", "");
    return String.format(
        Locale.ROOT,
        "%d cores, %d GiB, Linux %s, Java %s",
        Runtime.getRuntime().availableProcessors(),
        Long.parseLong(memory) >> 20,
        System.getProperty("os.version"),
        Runtime.version());
  }

  /** Empties the page cache, so that files come from the disk. Needs root. */
  static void dropCaches() throws IOException, InterruptedException {
    run("sync");
    Files.writeString(DROP_CACHES, "3");
  }

  /** Reads every file below a folder, so that they come from memory. */
  static void warm(Path folder) throws IOException, InterruptedException {
    run("sh", "-c", "find \"$0\" -type f -exec cat {} + > /dev/null", folder.toString());
    run("sync");
  }

  /** Refuses to measure without a program. */
  static void require(String program) throws InterruptedException {
    try {
      run(program, "--version");
    } catch (IOException missing) {
      throw Failure.environment("this needs %s, which is not installed here", program);
    }
  }

  /** Runs a program to its end and returns what it printed; fails if it fails. */
  static String run(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException(String.join(" ", command) + " failed: " + output);
    }
    return output;
  }

  /** The wall-clock seconds that a program takes. */
  static double time(String... command) throws IOException, InterruptedException {
    long start = System.nanoTime();
    run(command);
    return (System.nanoTime() - start) / 1e9;
  }

  /** The launcher of the tree that the benchmark was built from. */
  static String launcher() {
    return Path.of(System.getProperty("gristway.root", ".")).resolve("gristway").toString();
  }

  static double median(List<Double> values) {
    double[] sorted = values.stream().mapToDouble(Double::doubleValue).toArray();
    Arrays.sort(sorted);
    int middle = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }

  /** All rounds of an arm, sorted, for whoever wants to see the noise. */
  static String spread(List<Double> values, String format) {
    return values.stream()
        .sorted()
        .map(value -> String.format(Locale.ROOT, format, value))
        .toList()
        .toString();
  }
}
