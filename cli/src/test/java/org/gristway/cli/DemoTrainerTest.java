package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.LongUnaryOperator;
import java.util.stream.LongStream;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.pack.PackOptions;
import org.gristway.pack.Packer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class DemoTrainerTest {

  private static final int SAMPLES = 1000;
  private static final int BATCH = DemoTrainer.BATCH_SIZE;
  private static final long MILLISECOND = 1_000_000;
  private static final long LONG = Long.MAX_VALUE;

  @TempDir static Path folder;

  private static Path files = Path.of("");
  private static Dataset dataset;

  @BeforeAll
  static void pack() {
    files = folder.resolve("shapes");
    DemoFiles.make(files, SAMPLES, Progress.NONE);
    Path packed = folder.resolve("shapes.gw");
    Packer.pack(List.of(files), packed, PackOptions.DEFAULT, Progress.NONE, _ -> {});
    dataset = Dataset.open(packed);
  }

  @AfterAll
  static void close() {
    dataset.close();
  }

  private static DemoTrainer trainer(long stepNanos) {
    return new DemoTrainer(dataset.snapshot(), stepNanos, Progress.NONE);
  }

  private static DemoFeed files(LongUnaryOperator order) {
    return new DemoFileFeed(files, dataset.snapshot(), order, BATCH);
  }

  @Test
  void is_given_every_sample_once_and_is_busy_with_each_batch() {
    DemoRun run = trainer(5 * MILLISECOND).train("x", () -> files(i -> SAMPLES - 1 - i), LONG);
    assertThat(run.complete()).isTrue();
    assertThat(run.order())
        .containsExactly(LongStream.range(0, SAMPLES).map(i -> SAMPLES - 1 - i).toArray());
    assertThat(run.bytes()).isEqualTo(dataset.snapshot().dataBytes());
    assertThat(run.cost().reads()).isEqualTo(SAMPLES);
    assertThat(run.steps()).hasSize(4);
    // Three full batches, and one that keeps it busy for as much less as it is smaller.
    assertThat(run.nanos() - run.stallNanos())
        .isGreaterThanOrEqualTo(5 * MILLISECOND * SAMPLES / BATCH - 4);
    assertThat(run.stallShare()).isBetween(0.0, 1.0);
    assertThat(run.stallNanosUntil(SAMPLES)).isEqualTo(run.stallNanos());
    assertThat(run.stallNanosUntil(1)).isEqualTo(run.steps()[0].nanos());
  }

  @Test
  void stops_when_the_time_is_over_and_so_does_the_reading() {
    DemoRun run = trainer(50 * MILLISECOND).train("x", () -> files(i -> i), MILLISECOND);
    assertThat(run.complete()).isFalse();
    assertThat(run.samples()).isEqualTo(BATCH);
    assertThat(Thread.getAllStackTraces().keySet())
        .noneMatch(thread -> thread.getName().equals("gristway-demo-files"));
  }

  @Test
  void a_sample_that_comes_twice_is_noticed() {
    assertThatThrownBy(() -> trainer(1).train("x", () -> files(i -> i % 300), LONG))
        .hasMessage("sample 0 was delivered twice");
  }

  /** Gives the first sample a changed byte. */
  private record Changed(DemoFeed feed) implements DemoFeed {
    @Override
    public Samples next() {
      Samples samples = feed.next();
      return new Samples() {
        @Override
        public int size() {
          return samples.size();
        }

        @Override
        public long id(int place) {
          return samples.id(place);
        }

        @Override
        public ByteBuffer bytes(int place) {
          ByteBuffer bytes = samples.bytes(place);
          if (place == 0) {
            bytes.put(100, (byte) ~bytes.get(100));
          }
          return bytes;
        }
      };
    }

    @Override
    public long residentBytes() {
      return 0;
    }

    @Override
    public Cost cost() {
      return feed.cost();
    }

    @Override
    public void close() {
      feed.close();
    }
  }

  @Test
  void a_changed_byte_is_noticed() {
    assertThatThrownBy(() -> trainer(1).train("x", () -> new Changed(files(i -> i)), LONG))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("'" + dataset.snapshot().key(0) + "' came with other bytes");
  }

  @Test
  void a_file_that_is_gone_is_named() throws Exception {
    Path file = files.resolve("ring/0003.png");
    byte[] bytes = Files.readAllBytes(file);
    Files.delete(file);
    try {
      assertThatThrownBy(() -> trainer(1).train("x", () -> files(i -> i), LONG))
          .isInstanceOf(Failure.class)
          .hasMessage("cannot read " + file + ": no such file or folder");
    } finally {
      Files.write(file, bytes);
    }
  }
}
