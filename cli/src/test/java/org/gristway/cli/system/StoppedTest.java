package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.gristway.cli.Cli;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Asked to end, a command does: soon, silently, and with nothing left lying about. */
@Tag("java")
class StoppedTest {

  private static final String SMALL_CHUNKS = "--chunk-size=64KiB";

  @TempDir static Path folder;

  private static Path first;
  private static Path second;
  private static Path one;
  private static Path both;
  private static long packTime;
  private static long appendTime;

  private enum Signal {
    INT(130),
    TERM(143);

    private final int exit;

    Signal(int exit) {
      this.exit = exit;
    }
  }

  @BeforeAll
  static void packUndisturbed() throws IOException {
    Random random = new Random(Seeds.of("StoppedTest"));
    first = Trees.make(folder.resolve("first"), 2000, 1000, random);
    second = Trees.make(folder.resolve("second"), 1500, 1000, random);
    one = folder.resolve("one.gw");
    both = folder.resolve("both.gw");
    packTime = Cli.time("pack", SMALL_CHUNKS, first, one);
    Trees.copy(one, both);
    appendTime = Cli.time("append", SMALL_CHUNKS, second, both);
  }

  /** Returns whether it was in time. */
  private static boolean isStopped(Signal signal, long moment, Object... args) throws Exception {
    // Whatever a shell in the background has made of the signal is undone.
    Process process = new Cli().through("env", "--default-signal=INT,TERM").builder(args).start();
    // A signal in the first milliseconds ends the JVM itself, with whatever status, before our
    // code.
    long later = Math.max(moment, TimeUnit.MILLISECONDS.toNanos(100));
    boolean unused = process.waitFor(later, TimeUnit.NANOSECONDS);
    if (process.isAlive()) {
      Cli.await(new ProcessBuilder("kill", "-" + signal, String.valueOf(process.pid())).start());
    }
    long start = System.nanoTime();
    int exit = Cli.await(process);
    assertThat(TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start)).isLessThan(4);
    assertThat(exit).isIn(0, signal.exit);
    String err = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
    // What the JVM says of a signal in its first milliseconds, before our code begins.
    assertThat(err.replaceAll("Runtime\\.exit\\(\\d+\\) logging failed: .*\\n", "")).isEmpty();
    if (exit == 0) {
      assertThat(process.getInputStream().readAllBytes()).isNotEmpty();
    }
    return exit != 0;
  }

  @ParameterizedTest
  @EnumSource
  void packLeavesNothingBehind(Signal signal) throws Exception {
    Random random = new Random(Seeds.of("StoppedTest pack " + signal));
    int stopped = 0;
    int moments = Thorough.count(3, 25);
    for (int i = 0; i < moments; i++) {
      Path place = Files.createDirectory(folder.resolve("place"));
      Path target = place.resolve("data.gw");
      long moment = (long) ((i + random.nextDouble()) / moments * packTime);
      if (isStopped(signal, moment, "pack", SMALL_CHUNKS, first, target)) {
        stopped++;
      } else {
        assertThat(target).exists();
      }
      // The signal may come after the dataset was published.
      if (Trees.exists(target)) {
        Trees.assertIdentical(target, one);
        assertThat(Trees.names(place)).containsExactly("data.gw");
      } else {
        assertThat(Trees.names(place)).isEmpty();
      }
      Trees.delete(place);
    }
    assertThat(stopped).isPositive();
  }

  @ParameterizedTest
  @EnumSource
  void appendLeavesNothingBehind(Signal signal) throws Exception {
    Random random = new Random(Seeds.of("StoppedTest append " + signal));
    int moments = Thorough.count(3, 25);
    for (int i = 0; i < moments; i++) {
      Path target = Trees.copy(one, folder.resolve("data.gw"));
      long moment = (long) ((i + random.nextDouble()) / moments * appendTime);
      boolean stopped = isStopped(signal, moment, "append", SMALL_CHUNKS, second, target);
      boolean published = Trees.exists(target.resolve("snapshot-000002.gws"));
      assertThat(stopped || published).isTrue();
      Trees.assertIdentical(target, published ? both : one);
      Trees.delete(target);
    }
  }
}
