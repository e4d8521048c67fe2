package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** How long {@code ./gristway --version} takes once it is built. */
final class StartupBenchmark implements Main.Benchmark {

  @Override
  public void run(Path folder, int rounds) throws IOException, InterruptedException {
    Machine.run(Machine.launcher(), "--version");
    List<Double> times = new ArrayList<>();
    for (int round = 0; round < 4 * rounds; round++) {
      times.add(1000 * Machine.time(Machine.launcher(), "--version"));
    }
    System.out.printf(Locale.ROOT, "gristway --version: %.0f ms (median)%n", Machine.median(times));
    System.out.println("  " + Machine.spread(times, "%.0f"));
  }
}
