package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.gristway.cli.Cli;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two processes, one dataset. */
@Tag("java")
class AtOnceTest {

  private static final String SMALL_CHUNKS = "--chunk-size=64KiB";

  @TempDir static Path folder;

  private static Path first;
  private static Path second;
  private static Path third;
  private static Path one;
  private static Path other;
  private static long packTime;

  @BeforeAll
  static void packUndisturbed() throws IOException {
    Random random = new Random(Seeds.of("AtOnceTest"));
    first = Trees.make(folder.resolve("first"), 2000, 1000, random);
    second = Trees.make(folder.resolve("second"), 1000, 1000, random);
    third = Trees.make(folder.resolve("third"), 1000, 1000, random);
    one = folder.resolve("one.gw");
    other = folder.resolve("other.gw");
    packTime = Cli.time("pack", SMALL_CHUNKS, first, one);
    Cli.run("pack", SMALL_CHUNKS, second, other).isDone();
  }

  /** Starts two commands, the second one after {@code nanos}, and awaits their ends. */
  private static List<Cli.Result> both(Object[] call, long nanos, Object[] later)
      throws IOException, InterruptedException {
    List<Process> processes = new ArrayList<>();
    processes.add(new Cli().builder(call).start());
    TimeUnit.NANOSECONDS.sleep(nanos);
    processes.add(new Cli().builder(later).start());
    List<Cli.Result> results = new ArrayList<>();
    for (Process process : processes) {
      int exit = Cli.await(process);
      byte[] out = process.getInputStream().readAllBytes();
      byte[] err = process.getErrorStream().readAllBytes();
      results.add(new Cli.Result(exit, out, new String(err, StandardCharsets.UTF_8)));
    }
    return results;
  }

  private static Object[] call(Object... args) {
    return args;
  }

  /** The first at the same time, the last in the middle of the other's work or after it. */
  private static long delay(int i, int cases, Random random) {
    return i == 0 ? 0 : (long) ((i - 1 + random.nextDouble()) / (cases - 1) * packTime * 1.2);
  }

  @Test
  void onePackOfTwoSucceeds() throws Exception {
    Random random = new Random(Seeds.of("AtOnceTest pack"));
    int cases = Thorough.count(2, 20);
    for (int i = 0; i < cases; i++) {
      Path place = Files.createDirectory(folder.resolve("place"));
      Path target = place.resolve("data.gw");
      Object[] call = call("pack", SMALL_CHUNKS, first, target);
      List<Cli.Result> results = both(call, delay(i, cases, random), call);
      assertThat(results).filteredOn(result -> result.exit() == 0).hasSize(1);
      for (Cli.Result result : results) {
        if (result.exit() == 3) {
          assertThat(result.complaint(3)).contains("another process is packing into " + target);
        } else if (result.exit() != 0) {
          assertThat(result.complaint(2)).contains(target + " exists already");
        }
      }
      Trees.verify(target);
      Trees.assertIdentical(target, one);
      assertThat(Trees.names(place)).containsExactly("data.gw");
      Trees.delete(place);
    }
  }

  @Test
  void ofTwoAppendsOneIsRefusedOrBothSucceedInTurn() throws Exception {
    Random random = new Random(Seeds.of("AtOnceTest append"));
    int cases = Thorough.count(2, 20);
    for (int i = 0; i < cases; i++) {
      Path target = Trees.copy(one, folder.resolve("data.gw"));
      List<Cli.Result> results =
          both(
              call("append", SMALL_CHUNKS, second, target),
              delay(i, cases, random),
              call("append", SMALL_CHUNKS, third, target));
      long done = results.stream().filter(result -> result.exit() == 0).count();
      assertThat(done).isPositive();
      for (Cli.Result result : results) {
        if (result.exit() != 0) {
          assertThat(result.complaint(3)).contains("another process is changing " + target);
        }
      }
      assertThat(Trees.verify(target).samples()).isEqualTo(2000 + done * 1000);
      assertThat(Trees.names(target)).contains("snapshot-00000" + (done + 1) + ".gws");
      assertThat(Trees.names(target)).noneMatch(name -> name.startsWith("."));
      Trees.delete(target);
    }
  }

  @Test
  void ofAReplacementAndAnAppendOneIsRefusedOrBothSucceedInTurn() throws Exception {
    Random random = new Random(Seeds.of("AtOnceTest replace"));
    int cases = Thorough.count(2, 20);
    for (int i = 0; i < cases; i++) {
      Path place = Files.createDirectory(folder.resolve("place"));
      Path target = Trees.copy(one, place.resolve("data.gw"));
      List<Cli.Result> results =
          both(
              call("pack", "--force", SMALL_CHUNKS, second, target),
              delay(i, cases, random),
              call("append", SMALL_CHUNKS, third, target));
      assertThat(results).anyMatch(result -> result.exit() == 0);
      for (Cli.Result result : results) {
        if (result.exit() != 0) {
          assertThat(result.complaint(3)).contains("another process is changing " + target);
        }
      }
      boolean replaced = results.get(0).exit() == 0;
      long samples = Trees.verify(target).samples();
      if (replaced) {
        assertThat(samples).isIn(1000L, 2000L); // 2000: appended to the new one
      } else {
        assertThat(samples).isEqualTo(3000);
      }
      if (samples == 1000) {
        assertThat(Trees.isSame(target, other)).isTrue();
      }
      assertThat(Trees.names(target)).noneMatch(name -> name.startsWith("."));
      assertThat(Trees.names(place)).containsExactly("data.gw");
      Trees.delete(place);
    }
  }
}
