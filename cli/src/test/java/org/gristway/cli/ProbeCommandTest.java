package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import tools.jackson.databind.JsonNode;

@Tag("java")
class ProbeCommandTest {

  /** So little that it is over in a few seconds, and so much that processor time can be told. */
  private static final double LITTLE = 0.1;

  @TempDir Path folder;

  /** In the long run the command as users have it, and else the same with less patience. */
  private Cli.Result probe() throws IOException {
    if (Thorough.on()) {
      return Cli.run("probe", folder, "--json");
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    Console console = new Console(out, err);
    ProbeCommand command = new ProbeCommand(console, LITTLE);
    new CommandLine(command).parseArgs(folder.toString(), "--json");
    int exit = command.run();
    console.flush();
    return new Cli.Result(exit, out.toByteArray(), err.toString(StandardCharsets.UTF_8));
  }

  @Test
  void storage_is_measured_and_nothing_is_left() throws IOException {
    Path killed = Files.createDirectory(folder.resolve(".gristway-probe-999999999"));
    Files.writeString(killed.resolve("file"), "left by a probe that was killed");
    JsonNode json = probe().isDone().json();
    assertThat(json.propertyNames())
        .containsExactly(
            "folder",
            "fileBytes",
            "direct",
            "reads",
            "bufferedBytesPerSecond",
            "cachedBytesPerSecond",
            "smallFilesPerSecond",
            "copyBytesPerSecond",
            "checkedCopyBytesPerSecond",
            "deliverySeconds",
            "processors",
            "saturatingExtentBytes");
    assertThat(json.get("fileBytes").asLong()).isBetween(Probe.LEAST_BYTES, Probe.MOST_BYTES);
    assertThat(json.get("reads")).hasSize(18);
    for (JsonNode reads : json.get("reads")) {
      assertThat(reads.get("bytesPerSecond").asDouble()).isPositive();
      assertThat(reads.get("bytesPerSecond").asDouble() / reads.get("bytes").asDouble())
          .isEqualTo(reads.get("requestsPerSecond").asDouble());
      // Some of what a read takes is not this process's, or too little to be seen.
      assertThat(reads.get("processors").asDouble())
          .isBetween(0.0, 1.5 * json.get("processors").asInt());
    }
    assertThat(json.get("smallFilesPerSecond").asDouble()).isPositive();
    assertThat(json.get("checkedCopyBytesPerSecond").asDouble()).isBetween(1e6, 1e12);
    assertThat(json.get("deliverySeconds").asDouble()).isBetween(1e-8, 1e-3);
    assertThat(json.get("saturatingExtentBytes").asLong()).isBetween(4L << 10, 4L << 20);
    try (Stream<Path> left = Files.list(folder)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void what_is_no_folder_is_refused() throws IOException {
    Path file = Files.writeString(folder.resolve("file"), "x");
    assertThat(Cli.run("probe", file).complaint(2)).contains("is not a folder");
    assertThat(Cli.run("probe", folder.resolve("none")).complaint(2)).contains("is not a folder");
  }
}
