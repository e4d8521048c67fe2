package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;
import static org.gristway.pack.Packs.assertHolds;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SortedMap;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.dataset.Verifier;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Files that change after they were listed: deterministically, between listing and copying. */
@Tag("java")
class ChangingSourceTest {

  /** What may happen to a file meanwhile. */
  enum Change {
    GROWS {
      @Override
      void make(Path file) throws IOException {
        Files.write(file, new byte[] {1}, StandardOpenOption.APPEND);
      }
    },
    SHRINKS {
      @Override
      void make(Path file) throws IOException {
        Files.write(file, new byte[] {1});
      }
    },
    VANISHES {
      @Override
      void make(Path file) throws IOException {
        Files.delete(file);
      }
    },
    IS_TOUCHED {
      @Override
      void make(Path file) throws IOException {
        Files.setLastModifiedTime(file, FileTime.fromMillis(1_000_000));
      }
    },
    BECOMES_A_FOLDER {
      @Override
      void make(Path file) throws IOException {
        Files.delete(file);
        Files.createDirectory(file);
      }
    },
    BECOMES_A_PIPE {
      @Override
      void make(Path file) throws IOException {
        Files.delete(file);
        Programs.run(file.getParent(), "mkfifo", file.toString());
      }
    };

    abstract void make(Path file) throws IOException;
  }

  @TempDir Path folder;

  @ParameterizedTest
  @EnumSource
  void a_file_that_changes_meanwhile_stops_the_pack(Change change) {
    Path source =
        Trees.write(
            Trees.of("a/one", "111", "a/two", "222", "b/three", "333"), folder.resolve("source"));
    List<String> told = new ArrayList<>();
    assertFails(
        Kind.DAMAGED,
        () ->
            Packer.pack(
                List.of(source),
                folder.resolve("dataset"),
                Packs.SMALL_CHUNKS,
                Interference.beforeCopying(() -> change.make(source.resolve("a/two"))),
                told::add),
        "1 file could not be read",
        "--skip-unreadable");
    assertThat(told).singleElement().asString().contains("a/two");
    assertHolds(folder, "source");
  }

  @ParameterizedTest
  @EnumSource
  void a_file_that_changes_meanwhile_can_be_left_out_without_a_trace(Change change)
      throws IOException {
    Random random = new Random(Seeds.of("left_out_without_a_trace " + change));
    SortedMap<String, byte[]> tree = Trees.random(random, 100);
    List<String> names = new ArrayList<>(tree.keySet());
    names.removeIf(name -> tree.get(name).length < 2);
    java.util.Collections.shuffle(names, random);
    List<String> changing = names.subList(0, 3);
    Path source = Trees.write(tree, folder.resolve("source"));
    List<String> told = new ArrayList<>();
    PackReport report =
        Packer.pack(
            List.of(source),
            folder.resolve("dataset"),
            Packs.SMALL_CHUNKS.withSkipUnreadable(true),
            Interference.beforeCopying(
                () -> {
                  for (String name : changing) {
                    change.make(source.resolve(name));
                  }
                }),
            told::add);
    assertThat(told).hasSize(3);
    assertThat(report.leftOut()).isEqualTo(3);
    Path without = Trees.write(tree, folder.resolve("without"));
    for (String name : changing) {
      Files.delete(without.resolve(name));
    }
    Packs.pack(without, folder.resolve("expected"));
    Packs.assertSameFiles(folder.resolve("dataset"), folder.resolve("expected"));
    assertHolds(folder, "source", "dataset", "without", "expected");
  }

  @Test
  void when_nothing_can_be_read_nothing_is_published() {
    Path source = Trees.write(Trees.of("a/one", "1"), folder.resolve("source"));
    assertFails(
        Kind.DAMAGED,
        () ->
            Packer.pack(
                List.of(source),
                folder.resolve("dataset"),
                Packs.SMALL_CHUNKS.withSkipUnreadable(true),
                Interference.beforeCopying(() -> Files.delete(source.resolve("a/one"))),
                line -> {}),
        "not one file");
    assertHolds(folder, "source");
  }

  @ParameterizedTest
  @org.junit.jupiter.params.provider.ValueSource(strings = {"s.tar", "s.tar.gz", "s.zip"})
  void an_archive_that_is_rewritten_meanwhile_stops_the_pack(String name) {
    Map<String, byte[]> before = Trees.of("a/one", "111", "a/two", "222");
    Map<String, byte[]> after = Trees.of("a/one", "444", "a/two", "555");
    Path archive = archive(before, folder.resolve(name));
    assertFails(
        Kind.DAMAGED,
        () ->
            Packer.pack(
                List.of(archive),
                folder.resolve("dataset"),
                Packs.SMALL_CHUNKS,
                Interference.beforeCopying(() -> archive(after, archive)),
                line -> {}),
        "could not be read");
    assertHolds(folder, name);
  }

  private static Path archive(Map<String, byte[]> tree, Path path) {
    return path.toString().endsWith(".zip") ? Trees.zip(tree, path) : Trees.tar(tree, path);
  }

  @Test
  void what_is_left_out_of_one_source_does_not_shift_those_behind_it() throws IOException {
    Path tar = Trees.tar(Trees.of("t1", "111", "t2", "222", "t3", "3"), folder.resolve("s.tgz"));
    Path source = Trees.write(Trees.of("a/1", "four", "a/2", "five5"), folder.resolve("source"));
    FileTime time = Files.getLastModifiedTime(tar);
    Path dataset = folder.resolve("dataset");
    Packer.pack(
        List.of(tar, source),
        dataset,
        Packs.SMALL_CHUNKS.withSkipUnreadable(true),
        Interference.beforeCopying(
            () -> {
              Trees.tar(Trees.of("t1", "1", "t2", "222", "t3", "3"), tar);
              Files.setLastModifiedTime(tar, time);
            }),
        line -> {});
    assertThat(Verifier.verify(dataset, Progress.NONE).faults()).isEmpty();
    SortedMap<String, Packs.Content> expected =
        Model.of(
            new Model.Files(Trees.of("t2", "222", "t3", "3"), true, false),
            new Model.Files(Trees.of("a/1", "four", "a/2", "five5"), false, true));
    assertThat(Packs.contents(dataset)).isEqualTo(expected);
  }
}
