package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.gristway.Progress;
import org.gristway.cli.Cli;
import org.gristway.dataset.Rebuilder;
import org.gristway.pack.PackOptions;
import org.gristway.pack.PackReport;
import org.gristway.pack.Packer;
import org.gristway.pack.Placer;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A kill may hit at any moment, so the test tries many, over all the time that a command takes. */
@Tag("java")
class KilledTest {

  private static final String SMALL_CHUNKS = "--chunk-size=64KiB";
  private static final PackOptions OPTIONS = PackOptions.DEFAULT.withChunkSize(64 << 10);
  private static final String NAME = "data.gw";
  private static final int FIRST = 2500;
  private static final int SECOND = 1500;
  private static final int THIRD = 20;

  @TempDir static Path folder;

  private static Path first;
  private static Path second;
  private static Path third;

  /** The first source, the second one, and the first with the second appended. */
  private static Path one;

  private static Path other;
  private static Path both;

  /** The chunks of the first that node 0 of 2 gets. */
  private static Path placed;

  private static long packTime;
  private static long forceTime;
  private static long appendTime;
  private static long placeTime;

  @BeforeAll
  static void packUndisturbed() throws Exception {
    Random random = new Random(Seeds.of("KilledTest"));
    first = Trees.make(folder.resolve("first"), FIRST, 1000, random);
    second = Trees.make(folder.resolve("second"), SECOND, 1000, random);
    third = Trees.make(folder.resolve("third"), THIRD, 1000, random);
    one = Files.createDirectories(folder.resolve("one")).resolve(NAME);
    other = Files.createDirectories(folder.resolve("other")).resolve(NAME);
    both = Files.createDirectories(folder.resolve("both")).resolve(NAME);
    packTime = Cli.time("pack", SMALL_CHUNKS, first, one);
    Trees.copy(one, other);
    Trees.copy(one, both);
    forceTime = Cli.time("pack", "--force", SMALL_CHUNKS, second, other);
    appendTime = Cli.time("append", SMALL_CHUNKS, second, both);
    placed = Files.createDirectories(folder.resolve("placed")).resolve(NAME);
    placeTime = Cli.time("place", one, "--nodes", 2, placed, folder.resolve("placed/node1"));
  }

  /** When to kill: at a moment, or when something is to be seen. */
  private interface Trigger {
    void await(Process process) throws InterruptedException;
  }

  private static Trigger after(long nanos) {
    return process -> {
      boolean unused = process.waitFor(nanos, TimeUnit.NANOSECONDS);
    };
  }

  private static Trigger when(BooleanSupplier seen) {
    return process -> {
      while (process.isAlive() && !seen.getAsBoolean()) {
        Thread.onSpinWait();
      }
    };
  }

  /** What is killed, and what must hold afterwards. */
  private enum Command {
    PACK {
      @Override
      void prepare(Path target) {}

      @Override
      Object[] call(Path target) {
        return new Object[] {"pack", SMALL_CHUNKS, first, target};
      }

      @Override
      boolean check(Path target) throws IOException {
        boolean published = Trees.exists(target);
        if (published) {
          Trees.verify(target);
          Trees.assertIdentical(target, one);
        }
        pack(first, target, OPTIONS.withForce(published));
        Trees.assertIdentical(target, one);
        return published;
      }
    },

    REPLACE {
      @Override
      void prepare(Path target) throws IOException {
        Trees.copy(one, target);
      }

      @Override
      Object[] call(Path target) {
        return new Object[] {"pack", "--force", SMALL_CHUNKS, second, target};
      }

      @Override
      boolean check(Path target) throws IOException {
        Trees.verify(target);
        Files.deleteIfExists(target.resolve(".lock")); // empty, and locks nobody out
        boolean published = !Trees.isSame(target, one);
        Trees.assertIdentical(target, published ? other : one);
        pack(second, target, OPTIONS.withForce(true));
        Trees.assertIdentical(target, other);
        return published;
      }
    },

    APPEND {
      @Override
      void prepare(Path target) throws IOException {
        Trees.copy(one, target);
      }

      @Override
      Object[] call(Path target) {
        return new Object[] {"append", SMALL_CHUNKS, second, target};
      }

      @Override
      boolean check(Path target) throws IOException {
        boolean published = Trees.exists(target.resolve("snapshot-000002.gws"));
        assertThat(Trees.verify(target).samples()).isEqualTo(FIRST + (published ? SECOND : 0));
        if (published) {
          assertThat(Trees.isSame(target, both)).isTrue();
        }
        // What is published cannot be added again: the keys are there.
        PackReport report =
            Packer.append(
                List.of(published ? third : second),
                target,
                OPTIONS,
                Progress.NONE,
                Command::unexpected);
        assertThat(report.version()).isEqualTo(published ? 3 : 2);
        if (!published) {
          Trees.assertIdentical(target, both);
        }
        assertThat(Trees.verify(target).samples())
            .isEqualTo(FIRST + SECOND + (published ? THIRD : 0));
        Rebuilder.Report rebuilt = Rebuilder.rebuild(target, Progress.NONE);
        assertThat(rebuilt.written()).isEmpty();
        assertThat(rebuilt.loose()).isEmpty();
        assertThat(Trees.names(target)).noneMatch(name -> name.startsWith("."));
        return published;
      }
    },

    PLACE {
      @Override
      void prepare(Path target) {}

      @Override
      Object[] call(Path target) {
        return new Object[] {"place", one, "--nodes", 2, target, folder.resolve("node1")};
      }

      @Override
      boolean check(Path target) throws IOException {
        boolean published = Trees.exists(target);
        if (published) {
          Trees.assertIdentical(target, placed);
        }
        List<Path> targets = List.of(target, folder.resolve("node1"));
        List<Placer.Placed> again = Placer.place(one, targets, Progress.NONE);
        assertThat(again.getFirst().wasThere()).isEqualTo(published);
        Trees.assertIdentical(target, placed);
        Trees.verify(targets.getLast());
        Trees.delete(targets.getLast());
        return published;
      }
    };

    abstract void prepare(Path target) throws IOException;

    abstract Object[] call(Path target);

    /** Returns whether the command had published its result when it was killed. */
    abstract boolean check(Path target) throws IOException;

    private static void pack(Path source, Path target, PackOptions options) {
      Packer.pack(List.of(source), target, options, Progress.NONE, Command::unexpected);
    }

    private static void unexpected(String line) {
      throw new AssertionError(line);
    }

    /** Returns whether it had published. */
    boolean isSafeWhenKilled(Function<Path, Trigger> trigger) throws Exception {
      Path place = Files.createDirectory(folder.resolve("place"));
      Path target = place.resolve(NAME);
      prepare(target);
      Process process =
          new Cli()
              .builder(call(target))
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      try {
        trigger.apply(target).await(process);
      } finally {
        process.destroyForcibly();
      }
      assertThat(Cli.await(process)).isIn(0, 128 + 9);
      boolean published = check(target);
      assertThat(Trees.names(place)).containsExactly(NAME);
      Trees.delete(place);
      return published;
    }

    /** Moments spread evenly over the whole time, start-up and the very end included. */
    void isSafeWhenKilledAtAnyMoment(long time) throws Exception {
      Random random = new Random(Seeds.of("KilledTest " + this));
      int moments = Thorough.count(5, 50);
      int published = 0;
      for (int i = 0; i < moments; i++) {
        long moment = (long) ((i + random.nextDouble()) / moments * time * 1.1);
        System.out.printf("%s: killed after %d ms%n", this, moment / 1_000_000);
        published += isSafeWhenKilled(target -> after(moment)) ? 1 : 0;
      }
      System.out.printf(
          "%s takes %d ms; killed %d times, %d of them after publishing%n",
          this, time / 1_000_000, moments, published);
    }
  }

  @Test
  void packPublishesAllOrNothingWheneverItIsKilled() throws Exception {
    Command.PACK.isSafeWhenKilledAtAnyMoment(packTime);
  }

  @Test
  void replacingLeavesTheOldOrTheNewDatasetWheneverItIsKilled() throws Exception {
    Command.REPLACE.isSafeWhenKilledAtAnyMoment(forceTime);
  }

  @Test
  void appendLeavesTheOldOrTheNewVersionWheneverItIsKilled() throws Exception {
    Command.APPEND.isSafeWhenKilledAtAnyMoment(appendTime);
  }

  @Test
  void placePublishesAllOrNothingOfANodeWheneverItIsKilled() throws Exception {
    Command.PLACE.isSafeWhenKilledAtAnyMoment(placeTime);
  }

  private enum PackStage {
    LOCKED(".data.gw.lock"),
    COPYING(".data.gw.packing/dataset/chunk-000000.gwc"),
    INDEXING(".data.gw.packing/dataset/snapshot-000001.gws"),
    PUBLISHED("data.gw");

    private final String sign;

    PackStage(String sign) {
      this.sign = sign;
    }
  }

  @ParameterizedTest
  @EnumSource
  void packPublishesAllOrNothingWhenKilledAtAStage(PackStage stage) throws Exception {
    Command.PACK.isSafeWhenKilled(
        target -> when(() -> Trees.exists(target.resolveSibling(stage.sign))));
  }

  @Test
  void replacingIsSafeWhenKilledRightAfterTheExchange() throws Exception {
    // The new dataset has fewer chunks; the lowest name that only the old one has tells them apart.
    List<String> before = Trees.names(one);
    List<String> later = Trees.names(other);
    List<String> more = before.size() > later.size() ? before : later;
    List<String> fewer = before.size() > later.size() ? later : before;
    assertThat(more).hasSizeGreaterThan(fewer.size());
    String sign = more.stream().filter(name -> !fewer.contains(name)).findFirst().orElseThrow();
    boolean isNew = later.contains(sign);
    assertThat(
            Command.REPLACE.isSafeWhenKilled(
                target -> when(() -> Trees.exists(target.resolve(sign)) == isNew)))
        .isTrue();
  }

  private enum AppendStage {
    LOCKED(".lock"),
    COPYING(".change/dataset/snapshot-000002.gws"),
    FIRST_CHUNK_MOVED(null),
    PUBLISHED("snapshot-000002.gws");

    private final String sign;

    AppendStage(String sign) {
      this.sign = sign;
    }

    private String sign() throws IOException {
      return sign != null
          ? sign
          : Trees.names(both).stream()
              .filter(name -> !Trees.exists(one.resolve(name)))
              .findFirst()
              .orElseThrow();
    }
  }

  @ParameterizedTest
  @EnumSource
  void appendLeavesTheOldOrTheNewVersionWhenKilledAtAStage(AppendStage stage) throws Exception {
    String sign = stage.sign();
    Command.APPEND.isSafeWhenKilled(target -> when(() -> Trees.exists(target.resolve(sign))));
  }
}
