package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.gristway.Progress;
import org.gristway.cli.Cli;
import org.gristway.pack.PackOptions;
import org.gristway.pack.Packer;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Invariant 8 for readers: a kill, at any moment, leaves nothing and spoils nothing. */
@Tag("java")
class ReadKilledTest {

  @TempDir static Path folder;
  private static Path dataset;
  private static Path temporary;
  private static List<String> files;

  @BeforeAll
  static void pack() throws IOException {
    Random random = new Random(Seeds.of("ReadKilledTest"));
    Path source = Trees.make(folder.resolve("source"), 1500, 4000, random);
    dataset = folder.resolve("data.gw");
    Packer.pack(
        List.of(source),
        dataset,
        PackOptions.DEFAULT.withChunkSize(64 << 10),
        Progress.NONE,
        line -> {});
    temporary = Files.createDirectory(folder.resolve("temporary"));
    files = Trees.names(dataset);
  }

  private static Cli cli() {
    return new Cli().java("-Djava.io.tmpdir=" + temporary).env("TMPDIR", temporary.toString());
  }

  private static Object[] call(String policy, long epochs) {
    return new Object[] {
      "read",
      dataset,
      "--json",
      "--policy=" + policy,
      "--memory=512KiB",
      "--extent=16KiB",
      "--batch-size=20",
      "--ranks=2",
      "--epochs=" + epochs
    };
  }

  @ParameterizedTest
  @ValueSource(strings = {"redirect", "sample-order"})
  void a_kill_at_any_moment_leaves_nothing_and_the_next_read_is_the_same(String policy)
      throws Exception {
    Random random = new Random(Seeds.of("a_kill_at_any_moment_leaves_nothing " + policy));
    long start = System.nanoTime();
    List<String> digests = Reading.digests(cli().call(call(policy, 2)));
    long time = System.nanoTime() - start;
    for (int i = 0; i < Thorough.count(3, 25); i++) {
      Process process =
          cli()
              .builder(call(policy, 1_000_000))
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      // At any moment, start-up included; and in the midst of reading.
      long moment = random.nextLong(time);
      long batches = i % 2 == 0 ? random.nextLong(3000) : 0;
      kill(new Reading(process), moment, batches);
    }
    assertThat(Reading.digests(cli().call(call(policy, 2)))).isEqualTo(digests);
  }

  private static void kill(Reading reading, long moment, long batches) throws Exception {
    List<Long> memory;
    List<ProcessHandle> children;
    try {
      boolean unused = reading.process().waitFor(moment, TimeUnit.NANOSECONDS);
      reading.awaitBatches(batches);
      memory = reading.memoryFiles();
      children = reading.process().descendants().toList();
      assertThat(reading.segments()).isEmpty();
      System.out.printf(
          "killed after %d batches, with %d memory files%n",
          reading.counter("batches"), memory.size());
    } finally {
      reading.process().destroyForcibly();
    }
    assertThat(Cli.await(reading.process())).isEqualTo(128 + 9);
    assertThat(children).noneMatch(ProcessHandle::isAlive);
    assertThat(Reading.allMemoryFiles()).noneMatch(memory::contains);
    assertThat(reading.segments()).isEmpty();
    assertThat(Trees.names(dataset)).isEqualTo(files);
    assertThat(Trees.names(temporary)).isEmpty();
    assertThat(Trees.names(Path.of("/dev/shm")))
        .noneMatch(name -> name.contains(String.valueOf(reading.pid())));
  }
}
