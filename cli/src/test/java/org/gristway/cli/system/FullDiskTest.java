package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.gristway.cli.Cli;
import org.gristway.testing.Seeds;
import org.gristway.testing.SystemTest;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Disks that are too small: one line that says so, and the space is as free as before. */
@SystemTest
class FullDiskTest {

  private static final String SMALL_CHUNKS = "--chunk-size=256KiB";
  private static final long DISK = 16 << 20;

  @TempDir static Path folder;

  private static Path first;
  private static Path second;
  private static Path one;
  private static Path both;

  @BeforeAll
  static void pack() throws IOException {
    Random random = new Random(Seeds.of("FullDiskTest"));
    first = Trees.make(folder.resolve("first"), 2000, 4000, random);
    second = Trees.make(folder.resolve("second"), 1500, 4000, random);
    one = folder.resolve("one.gw");
    both = folder.resolve("both.gw");
    Cli.run("pack", SMALL_CHUNKS, first, one).isDone();
    Trees.copy(one, both);
    Cli.run("append", SMALL_CHUNKS, second, both).isDone();
  }

  private static long size(Path dataset) throws IOException {
    long bytes = 0;
    for (String name : Trees.names(dataset)) {
      bytes += Files.size(dataset.resolve(name));
    }
    return bytes;
  }

  private static void assertFull(Cli.Result result) {
    assertThat(result.complaint(3)).contains("No space left on device; free some space");
  }

  /** Too little for {@code bytes}: from next to nothing to almost enough. */
  private static long tooLittle(long bytes, int i, int cases, Random random) {
    return (long) ((i + random.nextDouble()) / cases * 0.99 * bytes);
  }

  @ParameterizedTest
  @EnumSource
  void packLeavesNothing(SmallDisk.Kind kind) throws IOException {
    Random random = new Random(Seeds.of("FullDiskTest pack " + kind));
    try (SmallDisk disk = SmallDisk.mount(kind, folder, DISK)) {
      long needed = size(one);
      int cases = Thorough.count(3, 40);
      for (int i = 0; i < cases; i++) {
        long left = i == 0 ? 0 : tooLittle(needed, i, cases, random);
        disk.leave(left);
        long used = disk.used();
        assertFull(Cli.run("pack", SMALL_CHUNKS, first, disk.folder().resolve("data.gw")));
        assertThat(Trees.names(disk.folder())).isEmpty();
        disk.sync();
        assertThat(disk.used()).as("with %d bytes left", left).isEqualTo(used);
      }
      disk.clear();
      Cli.run("pack", SMALL_CHUNKS, first, disk.folder().resolve("data.gw")).isDone();
      Trees.assertIdentical(disk.folder().resolve("data.gw"), one);
    }
  }

  @ParameterizedTest
  @EnumSource
  void appendLeavesTheVersionThatIsThere(SmallDisk.Kind kind) throws IOException {
    Random random = new Random(Seeds.of("FullDiskTest append " + kind));
    try (SmallDisk disk = SmallDisk.mount(kind, folder, DISK)) {
      Path dataset = Trees.copy(one, disk.folder().resolve("data.gw"));
      long needed = size(both) - size(one);
      int cases = Thorough.count(2, 40);
      for (int i = 0; i < cases; i++) {
        long left = tooLittle(needed, i, cases, random);
        disk.leave(left);
        long used = disk.used();
        assertFull(Cli.run("append", SMALL_CHUNKS, second, dataset));
        Trees.assertIdentical(dataset, one);
        Trees.verify(dataset);
        disk.sync();
        assertThat(disk.used()).as("with %d bytes left", left).isEqualTo(used);
      }
      disk.clear();
      Cli.run("append", SMALL_CHUNKS, second, dataset).isDone();
      Trees.assertIdentical(dataset, both);
    }
  }

  @ParameterizedTest
  @EnumSource
  void replacingLeavesTheOldDataset(SmallDisk.Kind kind) throws IOException {
    try (SmallDisk disk = SmallDisk.mount(kind, folder, DISK)) {
      Path dataset = Trees.copy(one, disk.folder().resolve("data.gw"));
      disk.leave(size(both) - size(one) - (1 << 20));
      assertFull(Cli.run("pack", "--force", SMALL_CHUNKS, second, dataset));
      Trees.assertIdentical(dataset, one);
      assertThat(Trees.names(disk.folder())).containsExactly("data.gw");
    }
  }

  @ParameterizedTest
  @EnumSource
  void unpackSaysThatTheSpaceIsMissing(SmallDisk.Kind kind) throws IOException {
    Random random = new Random(Seeds.of("FullDiskTest unpack " + kind));
    try (SmallDisk disk = SmallDisk.mount(kind, folder, DISK)) {
      int cases = Thorough.count(1, 10);
      for (int i = 0; i < cases; i++) {
        disk.leave(tooLittle(size(one), i, cases, random));
        Path target = disk.folder().resolve("files");
        assertFull(Cli.run("unpack", one, target));
        Trees.delete(target);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void readingGoesOnWithWhatCouldNotBeKept(SmallDisk.Kind kind) throws IOException {
    try (SmallDisk disk = SmallDisk.mount(kind, folder, DISK)) {
      disk.leave(1 << 20);
      assertThat(readWithCacheOn(disk, "clairvoyant"))
          .contains("fetched from the cache", "missed there");
      assertThat(readWithCacheOn(disk, "redirect")).contains("fetched from the cache");
    }
  }

  private static String readWithCacheOn(SmallDisk disk, String policy) throws IOException {
    long used = disk.used();
    Cli.Result read =
        Cli.run(
            "read",
            one,
            "--policy=" + policy,
            "--memory=1MiB",
            "--epochs=3",
            "--cache-disk=1GiB",
            "--cache-folder=" + disk.folder());
    assertThat(read.exit()).as(read.err()).isZero();
    assertThat(read.err().lines()).singleElement().asString().contains("No space left on device");
    disk.sync();
    assertThat(disk.used()).isEqualTo(used);
    assertThat(Trees.names(disk.folder())).isEmpty();
    return read.outText();
  }

  @ParameterizedTest
  @EnumSource
  void rebuildLeavesTheChunks(SmallDisk.Kind kind) throws IOException {
    Random random = new Random(Seeds.of("FullDiskTest rebuild " + kind));
    try (SmallDisk disk = SmallDisk.mount(kind, folder, DISK)) {
      Path dataset = Trees.copy(one, disk.folder().resolve("data.gw"));
      Path snapshot = dataset.resolve("snapshot-000001.gws");
      long needed = Files.size(snapshot);
      Files.delete(snapshot);
      int cases = Thorough.count(1, 20);
      for (int i = 0; i < cases; i++) {
        disk.leave(tooLittle(needed, i, cases, random));
        long used = disk.used();
        assertFull(Cli.run("rebuild", dataset));
        assertThat(Trees.names(dataset)).noneMatch(name -> name.startsWith("."));
        assertThat(snapshot).doesNotExist();
        disk.sync();
        assertThat(disk.used()).isEqualTo(used);
      }
      disk.clear();
      Cli.run("rebuild", dataset).isDone();
      Trees.assertIdentical(dataset, one);
    }
  }

  /** Space is reserved early, but somebody else may take what is left at any moment. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        ".data.gw.lock",
        ".data.gw.packing/scratch/attempt",
        ".data.gw.packing/dataset/chunk-000000.gwc"
      })
  void packIsSafeOnADiskThatFillsUpMeanwhile(String sign) throws IOException {
    try (SmallDisk disk = SmallDisk.mount(SmallDisk.Kind.TMPFS, folder, DISK)) {
      Path target = disk.folder().resolve("data.gw");
      Process process = new Cli().builder("pack", SMALL_CHUNKS, first, target).start();
      while (process.isAlive() && !Trees.exists(disk.folder().resolve(sign))) {
        Thread.onSpinWait();
      }
      disk.leave(0);
      int exit = Cli.await(process);
      String err = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
      byte[] out = process.getInputStream().readAllBytes();
      if (exit == 0) {
        Trees.assertIdentical(target, one);
        assertThat(Trees.names(disk.folder())).containsExactly("data.gw");
      } else {
        assertFull(new Cli.Result(exit, out, err));
        assertThat(Trees.names(disk.folder())).isEmpty();
      }
    }
  }

  @Test
  void packLeavesNothingWhereNoMoreFilesAreAllowed() throws IOException {
    try (SmallDisk disk = SmallDisk.mount(SmallDisk.Kind.TMPFS, folder, DISK)) {
      String point = disk.folder().getParent().toString();
      Commands.run("mount", "-o", "remount,nr_inodes=16", point);
      assertFull(Cli.run("pack", SMALL_CHUNKS, first, disk.folder().resolve("data.gw")));
      assertThat(Trees.names(disk.folder())).isEmpty();
    }
  }
}
