package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

@Tag("java")
class StatCommandTest {

  @TempDir static Path folder;

  @Test
  void a_running_reader_is_watched_while_it_reads() throws Exception {
    ReadDataset dataset = ReadDataset.pack(folder);
    Process reader =
        new Cli()
            .builder("read", dataset.path(), "--epochs", 1_000_000, "--json", "--threads", 1)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    try {
      long pid = reader.pid();
      long before = samples(pid, 0);
      long after = samples(pid, before);
      assertThat(after).isGreaterThan(before);

      List<String> lines = new Cli().call("stat", pid).isDone().outText().lines().toList();
      assertThat(lines)
          .startsWith(
              "process " + pid,
              "command gristway read " + dataset.path() + " --epochs 1000000 --json --threads 1")
          .allMatch(line -> line.matches("process \\d+|command .*|[a-z-]+ \\d+"))
          .anyMatch(line -> line.startsWith("stall-nanoseconds "))
          .anyMatch(line -> line.startsWith("storage-bytes "));
      assertThat(Cli.run("stat").isDone().outText()).contains("process " + pid + "\n");
    } finally {
      reader.destroyForcibly();
      assertThat(reader.waitFor(60, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(Cli.run("stat", reader.pid()).complaint(2)).contains("there is no process");
  }

  /** Asks until a process has delivered more samples than this. */
  private static long samples(long pid, long more) throws InterruptedException {
    for (int i = 0; i < 1000; i++) {
      Cli.Result result = Cli.run("stat", "--json", pid);
      if (result.exit() == 0) {
        JsonNode readers = result.json().get("readers");
        assertThat(readers).hasSize(1);
        assertThat(readers.get(0).get("process").asLong()).isEqualTo(pid);
        long samples = readers.get(0).get("counters").get("samples").asLong();
        if (samples > more) {
          return samples;
        }
      }
      Thread.sleep(50); // it is only starting
    }
    throw new AssertionError("process " + pid + " does not get on");
  }

  @Test
  void a_process_without_counters_is_named() throws IOException {
    long pid = ProcessHandle.current().pid();
    assertThat(Cli.run("stat", pid).complaint(2)).contains("process " + pid + " has no counters");
    assertThat(Cli.run("stat", 99_999_999).complaint(2)).contains("no process 99999999");
    assertThat(Cli.run("stat", "java").complaint(2)).contains("'java' is not a whole number");
  }
}
