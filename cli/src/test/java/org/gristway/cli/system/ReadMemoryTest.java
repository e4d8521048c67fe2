package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.gristway.Progress;
import org.gristway.cli.Cli;
import org.gristway.pack.PackOptions;
import org.gristway.pack.Packer;
import org.gristway.testing.Seeds;
import org.gristway.testing.SystemTest;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/**
 * Invariant 5 as the system sees it: a reader takes its budget, the handover and what a JVM takes,
 * however large the dataset is and however long it reads.
 */
@SystemTest
class ReadMemoryTest {

  private static final int BUDGET = 16 << 20;

  /** A heap that a leak of a few bytes a sample would fill, and what the JVM has beside it. */
  private static final String HEAP = "-Xmx24m";

  private static final int JVM = 96 << 20;

  @TempDir Path folder;

  @Test
  void a_dataset_of_many_times_the_budget_is_read_in_the_budget() throws IOException {
    assumeFalse(Files.getFileStore(folder).type().equals("tmpfs"), "temporary files are in memory");
    Random random = new Random(Seeds.of("ReadMemoryTest"));
    int samples = Thorough.count(6_000, 60_000);
    Path source = Trees.make(folder.resolve("source"), samples, 40_000, random);
    Path dataset = folder.resolve("data.gw");
    Packer.pack(List.of(source), dataset, PackOptions.DEFAULT, Progress.NONE, line -> {});
    int epochs = 10;
    long handover = read(dataset, 1, 1L << 40).get("handoverBytes").asLong();
    JsonNode report = read(dataset, epochs, BUDGET + handover + JVM);
    assertThat(report.get("datasetBytes").asLong()).isGreaterThan(5L * BUDGET);
    assertThat(report.get("epochs")).hasSize(epochs);
    for (JsonNode epoch : report.get("epochs")) {
      assertThat(epoch.get("samples").asLong()).isEqualTo(samples);
      assertThat(epoch.get("peakResidentBytes").asLong()).isBetween(1L, (long) BUDGET);
    }
  }

  private static JsonNode read(Path dataset, int epochs, long limitBytes) throws IOException {
    try (MemoryLimit limit = new MemoryLimit(limitBytes)) {
      Cli.Result result =
          new Cli()
              .flags(
                  List.of(
                      "-XX:+UseSerialGC",
                      "-XX:TieredStopAtLevel=1",
                      "-XX:-UsePerfData",
                      HEAP,
                      "--enable-native-access=ALL-UNNAMED"))
              .through(limit.wrapper())
              .within(600)
              .call(
                  "read",
                  dataset,
                  "--json",
                  "--memory=" + BUDGET,
                  "--batch-size=64",
                  "--epochs=" + epochs);
      System.out.printf("%d epochs within %d MiB: %s%n", epochs, limitBytes >> 20, limit.report());
      return result.isDone().json();
    }
  }
}
