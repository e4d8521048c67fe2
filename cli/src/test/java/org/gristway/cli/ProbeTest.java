package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.gristway.Progress;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class ProbeTest {

  /** So little that storage is measured in a second or two, and small files end in time. */
  private static final double LITTLE = 0.01;

  @TempDir Path folder;

  /** What was done in each stage, and how much there was in the folder when one began. */
  private final class Heard implements Progress {

    private final Map<String, Long> done = new ConcurrentHashMap<>();
    private volatile String stage = "";
    private volatile long mostBytes;

    @Override
    public void begin(String what, Unit unit, long total) {
      stage = what;
      done.put(what, 0L);
      mostBytes = Math.max(mostBytes, bytes());
    }

    @Override
    public void advance(long amount) {
      done.merge(stage, amount, Long::sum);
    }

    @Override
    public void end() {}
  }

  /** Of all files in the folder. */
  private long bytes() {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile).mapToLong(ProbeTest::bytes).sum();
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  private static long bytes(Path file) {
    try {
      return Files.size(file);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  @Test
  void no_more_is_written_than_is_said_and_what_was_done_in_time_counts() {
    Heard heard = new Heard();
    ProbeResult result;
    try (ProbeFolder probe = ProbeFolder.in(folder)) {
      result = new Probe(probe, heard, LITTLE).run();
      // The large file is gone before there are others.
      assertThat(bytes()).isLessThan(100 << 20);
    }
    assertThat(bytes()).isZero();
    assertThat(heard.done.get("writing a file"))
        .isEqualTo(result.fileBytes())
        .isBetween(Probe.LEAST_BYTES, Probe.MOST_BYTES);
    assertThat(heard.mostBytes).isEqualTo(result.fileBytes());
    assertThat(heard.done.get("small files")).isBetween(32L, 2L * Probe.SMALL_FILES);
    assertThat(result.smallFiles()).isPositive().isFinite();
  }
}
