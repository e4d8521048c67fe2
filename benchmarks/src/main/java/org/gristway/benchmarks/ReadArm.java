package org.gristway.benchmarks;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Locale;
import org.gristway.handover.Batch;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;
import org.gristway.read.ReadCounter;

/**
 * Reads a dataset in a process of its own, with a trainer that takes no time, and prints a line of
 * {@code name=value}: what was delivered, in how much time, at what cost.
 *
 * <p>The first epochs are left out: in them the JVM warms up, memory is touched for the first time
 * and a throttled disk gives more than its rate.
 */
final class ReadArm {

  private ReadArm() {}

  private static OperatingSystemMXBean system() {
    return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
  }

  /**
   * @param arguments dataset, policy, memory, epochs to warm up, epochs to measure, seconds at
   *     most, and, if they are given, seconds of the epochs to measure that are left out, and
   *     loaders, one after the other, of which only the last is measured
   */
  static void main(String[] arguments) {
    int warmUp = Integer.parseInt(arguments[3]);
    int epochs = Integer.parseInt(arguments[4]);
    double most = Double.parseDouble(arguments[5]);
    double leftOut = arguments.length > 6 ? Double.parseDouble(arguments[6]) : 0;
    LoaderOptions options =
        LoaderOptions.DEFAULT
            .withPolicy(arguments[1])
            .withMemory(Long.parseLong(arguments[2]))
            .withEpochs(warmUp + epochs);
    int loaders = arguments.length > 7 ? Integer.parseInt(arguments[7]) : 1;
    for (int i = 1; i < loaders; i++) {
      try (Loader unmeasured = Loader.open(Path.of(arguments[0]), options.withEpochs(1))) {
        unmeasured.epoch().forEach(batch -> {});
      }
    }
    long start = System.nanoTime();
    try (Loader loader = Loader.open(Path.of(arguments[0]), options)) {
      double open = seconds(start);
      for (int epoch = 0; epoch < warmUp; epoch++) {
        loader.epoch().forEach(batch -> {});
      }
      if (warmUp > 0) {
        start = System.nanoTime();
      }
      long cpu = system().getProcessCpuTime();
      long stall = loader.counter(ReadCounter.STALL_NANOS);
      long reads = loader.counter(ReadCounter.STORAGE_READS);
      long samples = 0;
      long bytes = 0;
      for (int epoch = 0; epoch < epochs && seconds(start) < leftOut + most; epoch++) {
        for (Batch batch : loader.epoch()) {
          if (leftOut > 0) {
            if (seconds(start) > leftOut) {
              leftOut = 0;
              start = System.nanoTime();
              cpu = system().getProcessCpuTime();
              stall = loader.counter(ReadCounter.STALL_NANOS);
              reads = loader.counter(ReadCounter.STORAGE_READS);
            }
            continue;
          }
          samples += batch.size();
          for (int i = 0; i < batch.size(); i++) {
            bytes += batch.length(i);
          }
          if (seconds(start) > most) {
            break;
          }
        }
      }
      double time = seconds(start);
      reads = loader.counter(ReadCounter.STORAGE_READS) - reads;
      System.gc();
      Runtime runtime = Runtime.getRuntime();
      System.out.printf(
          Locale.ROOT,
          "samples=%d bytes=%d seconds=%.6f cpu=%.6f stall=%.6f heap=%d storage=%d open=%.6f"
              + " reads=%d%n",
          samples,
          bytes,
          time,
          (system().getProcessCpuTime() - cpu) / 1e9,
          (loader.counter(ReadCounter.STALL_NANOS) - stall) / 1e9,
          runtime.totalMemory() - runtime.freeMemory(),
          loader.counter(ReadCounter.STORAGE_BYTES),
          open,
          reads);
    }
  }

  private static double seconds(long start) {
    return (System.nanoTime() - start) / 1e9;
  }
}
