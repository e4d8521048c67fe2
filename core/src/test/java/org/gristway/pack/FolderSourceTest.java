package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;
import static org.gristway.pack.Packs.assertHolds;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.SortedMap;
import org.gristway.Failure.Kind;
import org.gristway.dataset.Dataset;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class FolderSourceTest {

  @TempDir Path folder;

  private Path source(String... pathsAndTexts) {
    return Trees.write(Trees.of(pathsAndTexts), folder.resolve("source"));
  }

  private Path dataset() {
    return folder.resolve("dataset");
  }

  @Test
  void a_folder_without_files_has_nothing_to_pack() {
    Path source = source("a/", "", "b/c/", "");
    assertFails(Kind.WRONG_CALL, () -> Packs.pack(source, dataset()), source.toString());
    assertHolds(folder, "source");
  }

  @Test
  void a_file_larger_than_a_chunk_gets_a_chunk_of_its_own() {
    Random random = new Random(Seeds.of("a_file_larger_than_a_chunk_gets_a_chunk_of_its_own"));
    SortedMap<String, byte[]> tree = Trees.of("a/small", "1", "b/small", "2", "b/empty", "");
    tree.put("a/large", Trees.bytes(random, 3_333_333));
    tree.put("b/full", Trees.bytes(random, 64 << 10));
    Path source = Trees.write(tree, folder.resolve("source"));
    Packs.pack(source, dataset());
    assertThat(Packs.contents(dataset())).isEqualTo(Model.of(new Model.Files(tree, false, true)));
    try (Dataset open = Dataset.open(dataset())) {
      for (String key : List.of("a/large", "b/full")) {
        long id = open.find(key).orElseThrow().id();
        int chunk = open.snapshot().location(id).chunk();
        assertThat(open.snapshot().firstSample(chunk)).isEqualTo(id);
        assertThat(open.snapshot().firstSample(chunk + 1)).isEqualTo(id + 1);
      }
    }
  }

  @Test
  void a_folder_of_many_files_is_packed() throws IOException {
    int count = 50_000;
    Path many = Files.createDirectories(folder.resolve("source/many"));
    for (int i = 0; i < count; i++) {
      Files.createFile(many.resolve("file" + i));
    }
    Packs.pack(List.of(folder.resolve("source")), dataset(), PackOptions.DEFAULT);
    try (Dataset open = Dataset.open(dataset())) {
      assertThat(open.size()).isEqualTo(count);
      assertThat(open.list("many")).hasSize(count);
      assertThat(open.find("many/file49999").orElseThrow().length()).isZero();
    }
  }

  @Test
  void folders_among_many_files_are_packed_in_order() throws IOException {
    Path source = Files.createDirectory(folder.resolve("source"));
    for (int i = 0; i < 10_200; i++) {
      if (i % 50 == 0) {
        Files.createDirectory(source.resolve("n" + (100_000 + i)));
        Files.createFile(source.resolve("n" + (100_000 + i) + "/file"));
      } else {
        Files.createFile(source.resolve("n" + (100_000 + i)));
      }
    }
    Packs.pack(List.of(source), dataset(), PackOptions.DEFAULT.withKeepOrder(true));
    assertThat(Packs.keys(dataset())).hasSize(10_200).isSorted();
    try (Dataset open = Dataset.open(dataset())) {
      assertThat(open.list("")).hasSize(10_200);
      for (int i = 0; i < 10_200; i += 50) {
        String name = "n" + (100_000 + i);
        assertThat(open.find(name + "/file").orElseThrow().label()).isEqualTo(i / 50);
        assertThat(open.labelName(i / 50)).contains(name);
      }
    }
  }

  @Test
  void names_that_are_not_text_are_unreadable_and_shown_escaped() {
    Path source = source("a/good", "1");
    Programs.sh(source, "printf 2 > \"$(printf 'a/bad\\377\\001')\"");
    Programs.sh(source, "mkdir \"$(printf 'caf\\351')\" && touch \"$(printf 'caf\\351/x')\"");
    assertFails(Kind.DAMAGED, () -> Packs.pack(source, dataset()), "2 files");
    assertHolds(folder, "source");
    List<String> told =
        Packs.packTelling(source, dataset(), Packs.SMALL_CHUNKS.withSkipUnreadable(true));
    assertThat(told).hasSize(2);
    assertThat(told).anyMatch(line -> line.contains("a/bad\\xff\\x01"));
    assertThat(told).anyMatch(line -> line.contains("caf\\xe9"));
    assertThat(Packs.labels(dataset())).containsOnlyKeys("a/good");
  }

  @Test
  void links_to_what_is_inside_are_followed() {
    Path source = source("a/file", "1", "b/deep/other", "2");
    Programs.sh(source, "ln -s ../a/file b/link && ln -s b/deep c && ln -s \"$PWD/a\" absolute");
    assertThat(Packs.packTelling(source, dataset(), Packs.SMALL_CHUNKS)).isEmpty();
    SortedMap<String, byte[]> seen =
        Trees.of(
            "a/file",
            "1",
            "b/deep/other",
            "2",
            "b/link",
            "1",
            "c/other",
            "2",
            "absolute/file",
            "1");
    assertThat(Packs.contents(dataset())).isEqualTo(Model.of(new Model.Files(seen, false, true)));
  }

  @Test
  void links_out_of_the_source_and_loops_are_left_out_and_told() {
    Path source = source("a/file", "1");
    Trees.write(Trees.of("secret", "no"), folder.resolve("source-beside"));
    Programs.sh(
        source,
        "ln -s ../../source-beside/secret a/out; ln -s ../.. a/up; ln -s ../a a/back;"
            + " ln -s self a/self; ln -s .. a/top; ln -s ../../source-beside a/beside");
    List<String> told =
        assertTimeoutPreemptively(
            Duration.ofSeconds(60), () -> Packs.packTelling(source, dataset(), Packs.SMALL_CHUNKS));
    assertThat(told).hasSize(6);
    assertThat(told).filteredOn(line -> line.contains("leads out")).hasSizeBetween(3, 4);
    for (String name : List.of("a/out", "a/up", "a/back", "a/self", "a/top", "a/beside")) {
      assertThat(told).filteredOn(line -> line.contains("/" + name + ": ")).hasSize(1);
    }
    assertThat(Packs.labels(dataset())).containsOnlyKeys("a/file");
  }

  @Test
  void a_dangling_link_is_unreadable() {
    Path source = source("a/file", "1");
    Programs.sh(source, "ln -s nowhere a/dangling");
    assertFails(Kind.DAMAGED, () -> Packs.pack(source, dataset()), "1 file");
    assertHolds(folder, "source");
    assertThat(Packs.packTelling(source, dataset(), Packs.SMALL_CHUNKS.withSkipUnreadable(true)))
        .singleElement()
        .asString()
        .contains("a/dangling");
  }

  @Test
  void pipes_are_left_out_and_nobody_waits_for_them() {
    Path source = source("a/file", "1");
    Programs.sh(source, "mkfifo a/pipe");
    assertTimeoutPreemptively(
        Duration.ofSeconds(60),
        () ->
            assertThat(Packs.packTelling(source, dataset(), Packs.SMALL_CHUNKS))
                .singleElement()
                .asString()
                .contains("a/pipe", "neither a file nor a folder"));
    assertThat(Packs.labels(dataset())).containsOnlyKeys("a/file");
  }

  @Test
  void a_source_may_be_named_by_a_link_or_with_dots_in_its_path() {
    Path source = source("a/file", "1");
    Programs.sh(folder, "ln -s source link");
    Packs.pack(source, dataset());
    for (String name : List.of("link", "source/../source/.", "./link/a/..")) {
      Path other = folder.resolve("other");
      Packs.pack(folder.resolve(name), other);
      Packs.assertSameFiles(dataset(), other);
      Programs.sh(folder, "rm -r other");
    }
  }

  @Test
  void the_same_key_in_two_sources_is_refused() {
    Path one = source("a/file", "1");
    Path two = Trees.write(Trees.of("a/file", "2"), folder.resolve("two"));
    assertFails(
        Kind.WRONG_CALL,
        () -> Packs.pack(List.of(one, two), dataset(), Packs.SMALL_CHUNKS),
        "'a/file'");
    assertHolds(folder, "source", "two");
  }

  @Test
  void a_file_without_a_part_name_beside_one_with_is_refused() {
    Path source = source("a/x", "1", "a/x.jpg", "2");
    assertFails(
        Kind.WRONG_CALL,
        () -> Packs.pack(List.of(source), dataset(), Packs.SMALL_CHUNKS.withStemParts(true)),
        "'a/x'");
    assertHolds(folder, "source");
  }
}
