package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Asked to end, a reader does, and silently; halted, it goes on later as if nothing had been. */
@Tag("java")
class ReadStoppedTest {

  @TempDir static Path folder;
  private static Path dataset;

  private enum Signal {
    INT(130),
    TERM(143);

    private final int exit;

    Signal(int exit) {
      this.exit = exit;
    }
  }

  @BeforeAll
  static void pack() throws IOException {
    Random random = new Random(Seeds.of("ReadStoppedTest"));
    Path source = Trees.make(folder.resolve("source"), 1000, 4000, random);
    dataset = folder.resolve("data.gw");
    Packer.pack(
        List.of(source),
        dataset,
        PackOptions.DEFAULT.withChunkSize(64 << 10),
        Progress.NONE,
        line -> {});
  }

  private static ProcessBuilder reading(long epochs) {
    // Whatever a shell in the background has made of the signals is undone.
    return new Cli().through("env", "--default-signal=INT,TERM").builder(call(epochs));
  }

  private static Object[] call(long epochs) {
    return new Object[] {
      "read",
      dataset,
      "--json",
      "--memory=512KiB",
      "--extent=16KiB",
      "--batch-size=10",
      "--ranks=2",
      "--epochs=" + epochs
    };
  }

  @ParameterizedTest
  @EnumSource
  void a_reader_ends_when_it_is_asked_to(Signal signal) throws Exception {
    Random random = new Random(Seeds.of("a_reader_ends_when_it_is_asked_to " + signal));
    for (int i = 0; i < Thorough.count(2, 25); i++) {
      Reading reading = new Reading(reading(1_000_000).start());
      try {
        reading.awaitBatches(random.nextInt(2000));
        reading.signal(signal.name());
        assertThat(Cli.await(reading.process())).isEqualTo(signal.exit);
        assertThat(text(reading.process().getErrorStream())).isEmpty();
        assertThat(text(reading.process().getInputStream())).isEmpty();
      } finally {
        reading.process().destroyForcibly();
      }
    }
  }

  private static String text(InputStream stream) throws IOException {
    return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
  }

  @Test
  void a_halted_reader_goes_on_where_it_was() throws Exception {
    int epochs = Thorough.count(20, 200);
    List<String> digests = Reading.digests(new Cli().call(call(epochs)));
    Path out = folder.resolve("out");
    Path err = folder.resolve("err");
    Process process =
        reading(epochs).redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    Reading reading = new Reading(process);
    try {
      for (int batches : new int[] {10, 200, 400}) {
        reading.awaitBatches(batches);
        reading.signal("STOP");
        while (!state(process.pid()).equals("T")) {
          Thread.sleep(1);
        }
        // Its counters are there to be read though it cannot be asked.
        long counted = reading.counter("batches");
        assertThat(counted).isGreaterThanOrEqualTo(batches);
        TimeUnit.MILLISECONDS.sleep(100);
        assertThat(reading.counter("batches")).isEqualTo(counted);
        reading.signal("CONT");
      }
      int exit = Cli.await(process);
      Cli.Result result = new Cli.Result(exit, Files.readAllBytes(out), Files.readString(err));
      assertThat(Reading.digests(result)).isEqualTo(digests);
    } finally {
      process.destroyForcibly();
    }
  }

  private static String state(long pid) throws IOException {
    String line = Files.readString(Path.of("/proc/" + pid + "/stat"));
    return line.substring(line.lastIndexOf(')') + 2, line.lastIndexOf(')') + 3);
  }
}
