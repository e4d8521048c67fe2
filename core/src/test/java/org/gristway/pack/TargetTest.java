package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.gristway.pack.Packs.SMALL_CHUNKS;
import static org.gristway.pack.Packs.assertFails;
import static org.gristway.pack.Packs.assertHolds;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SortedMap;
import java.util.concurrent.CancellationException;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.dataset.Rebuilder;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where a dataset may be put, and what is left there when it does not come to that. */
@Tag("java")
class TargetTest {

  @TempDir Path folder;
  private Path source;
  private Path other;
  private Path target;

  @BeforeEach
  void writeSources() {
    source = Trees.write(Trees.of("a/1", "one", "b/2", "two"), folder.resolve("source"));
    other = Trees.write(Trees.of("c/3", "three", "c/4", "four"), folder.resolve("other"));
    target = folder.resolve("target");
  }

  private void pack(Path from, PackOptions options) {
    Packs.pack(List.of(from), target, options);
  }

  @Test
  void a_folder_that_is_no_dataset_is_never_replaced() throws IOException {
    Files.createDirectory(target);
    Files.writeString(target.resolve("precious"), "text");
    for (boolean force : List.of(false, true)) {
      assertFails(
          Kind.WRONG_CALL,
          () -> pack(source, SMALL_CHUNKS.withForce(force)),
          target.toString(),
          "not a dataset");
    }
    assertHolds(target, "precious");
    assertHolds(folder, "source", "other", "target");
  }

  @Test
  void a_dataset_with_something_else_in_it_is_not_replaced() throws IOException {
    pack(source, SMALL_CHUNKS);
    Files.writeString(target.resolve("notes.txt"), "text");
    assertFails(Kind.WRONG_CALL, () -> pack(other, SMALL_CHUNKS.withForce(true)), "not a dataset");
    assertHolds(target, "chunk-000000.gwc", "snapshot-000001.gws", "notes.txt");
  }

  @Test
  void a_file_is_never_replaced() throws IOException {
    Files.writeString(target, "precious");
    for (boolean force : List.of(false, true)) {
      assertFails(
          Kind.WRONG_CALL, () -> pack(source, SMALL_CHUNKS.withForce(force)), target.toString());
    }
    assertThat(target).hasContent("precious");
  }

  @Test
  void an_empty_folder_becomes_the_dataset() throws IOException {
    Files.createDirectory(target);
    pack(source, SMALL_CHUNKS);
    assertThat(Packs.labels(target)).containsOnlyKeys("a/1", "b/2");
    assertHolds(folder, "source", "other", "target");
  }

  @Test
  void a_dataset_is_replaced_only_if_asked() {
    pack(source, SMALL_CHUNKS);
    SortedMap<String, byte[]> before = Trees.read(target);
    assertFails(
        Kind.WRONG_CALL, () -> pack(other, SMALL_CHUNKS), target.toString(), "--force", "append");
    Packs.assertSameFiles(Trees.read(target), before);
    pack(other, SMALL_CHUNKS.withForce(true));
    assertThat(Packs.labels(target)).containsOnlyKeys("c/3", "c/4");
    assertHolds(folder, "source", "other", "target");
  }

  @Test
  void a_dataset_is_replaced_only_when_its_successor_is_complete() {
    pack(source, SMALL_CHUNKS);
    SortedMap<String, byte[]> before = Trees.read(target);
    assertFails(
        Kind.DAMAGED,
        () ->
            Packer.pack(
                List.of(other),
                target,
                SMALL_CHUNKS.withForce(true),
                Interference.beforeCopying(
                    () -> {
                      SortedMap<String, byte[]> meanwhile = Trees.read(target);
                      meanwhile.remove(".lock");
                      Packs.assertSameFiles(meanwhile, before);
                      Files.delete(other.resolve("c/4"));
                    }),
                line -> {}));
    Packs.assertSameFiles(Trees.read(target), before);
    assertHolds(folder, "source", "other", "target");
  }

  @Test
  void a_link_to_a_dataset_is_replaced_where_it_leads() throws IOException {
    Path real = folder.resolve("real");
    Packs.pack(source, real);
    Files.createSymbolicLink(target, Path.of("real"));
    pack(other, SMALL_CHUNKS.withForce(true));
    assertThat(target).isSymbolicLink();
    assertThat(Packs.labels(real)).containsOnlyKeys("c/3", "c/4");
    assertHolds(folder, "source", "other", "target", "real");
  }

  @Test
  void two_packs_into_one_target_do_not_meet() {
    Packer.pack(
        List.of(source),
        target,
        SMALL_CHUNKS,
        Interference.beforeCopying(
            () ->
                assertFails(Kind.ENVIRONMENT, () -> pack(other, SMALL_CHUNKS), target.toString())),
        line -> {});
    assertThat(Packs.labels(target)).containsOnlyKeys("a/1", "b/2");
    assertHolds(folder, "source", "other", "target");
  }

  @Test
  void what_appears_at_the_target_meanwhile_is_not_replaced() {
    assertFails(
        Kind.WRONG_CALL,
        () ->
            Packer.pack(
                List.of(source),
                target,
                SMALL_CHUNKS,
                Interference.beforeCopying(() -> Trees.write(Trees.of("precious", "text"), target)),
                line -> {}),
        target.toString());
    assertHolds(target, "precious");
    assertHolds(folder, "source", "other", "target");
  }

  @Test
  void a_target_inside_a_source_is_refused() {
    target = source.resolve("target");
    assertFails(Kind.WRONG_CALL, () -> pack(source, SMALL_CHUNKS), "inside", target.toString());
    target = source.resolve("a");
    assertFails(Kind.WRONG_CALL, () -> pack(source, SMALL_CHUNKS), "a");
    target = source;
    assertFails(Kind.WRONG_CALL, () -> pack(source, SMALL_CHUNKS.withForce(true)));
    assertHolds(source, "a", "b");
  }

  @Test
  void a_target_without_a_parent_folder_is_refused() {
    target = folder.resolve("no/such/target");
    assertFails(Kind.WRONG_CALL, () -> pack(source, SMALL_CHUNKS), folder.resolve("no/such") + "");
    target = Path.of("/");
    assertFails(Kind.WRONG_CALL, () -> pack(source, SMALL_CHUNKS));
    assertHolds(folder, "source", "other");
  }

  @Test
  void a_source_of_no_known_kind_is_refused() throws IOException {
    Path text = Files.writeString(folder.resolve("list.txt"), "text");
    assertFails(Kind.WRONG_CALL, () -> pack(text, SMALL_CHUNKS), "list.txt", ".tar", ".zip");
    Path missing = folder.resolve("missing");
    assertFails(Kind.WRONG_CALL, () -> pack(missing, SMALL_CHUNKS), missing.toString());
    assertHolds(folder, "source", "other", "list.txt");
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3://bucket/x", "gs://bucket/x", "https://host/x", "S3://b"})
  void object_stores_are_refused(String name) {
    Path store = Path.of(name);
    assertFails(Kind.WRONG_CALL, () -> pack(store, SMALL_CHUNKS), "object stores");
    assertFails(Kind.WRONG_CALL, () -> Packs.pack(source, store), "object stores");
    assertFails(Kind.WRONG_CALL, () -> Packs.append(source, store), "object stores");
  }

  @Test
  void what_a_killed_pack_left_is_cleared_by_the_next() {
    Trees.write(
        Trees.of(
            ".target.packing/dataset/chunk-000000.gwc",
            "half",
            ".target.packing/scratch/x/y",
            "",
            ".target.packing/attempt",
            "",
            ".target.lock",
            ""),
        folder);
    pack(source, SMALL_CHUNKS);
    assertHolds(folder, "source", "other", "target");
    assertThat(Packs.labels(target)).containsOnlyKeys("a/1", "b/2");
  }

  @Test
  void an_interrupted_pack_leaves_nothing() {
    try {
      assertThatThrownBy(
              () ->
                  Packer.pack(
                      List.of(source),
                      target,
                      SMALL_CHUNKS,
                      Interference.beforeCopying(() -> Thread.currentThread().interrupt()),
                      line -> {}))
          .isInstanceOf(CancellationException.class);
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
    assertHolds(folder, "source", "other");
  }

  @Test
  void an_append_that_fails_leaves_the_dataset_as_it_was() {
    pack(source, SMALL_CHUNKS);
    SortedMap<String, byte[]> before = Trees.read(target);
    assertFails(Kind.WRONG_CALL, () -> Packs.append(source, target), "key 'a/1'");
    Packs.assertSameFiles(Trees.read(target), before);
    assertFails(
        Kind.DAMAGED,
        () ->
            Packer.append(
                List.of(other),
                target,
                SMALL_CHUNKS,
                Interference.beforeCopying(() -> Files.delete(other.resolve("c/4"))),
                line -> {}));
    Packs.assertSameFiles(Trees.read(target), before);
    assertHolds(target, "chunk-000000.gwc", "snapshot-000001.gws");
  }

  @Test
  void what_a_killed_append_left_is_cleared_by_the_next() throws IOException {
    pack(source, SMALL_CHUNKS);
    Programs.sh(folder, "cp -r target expected");
    Packs.append(other, folder.resolve("expected"));
    Trees.write(
        Trees.of(
            ".change/dataset/chunk-000001.gwc",
            "half",
            ".change/scratch/x",
            "",
            ".lock",
            "",
            ".appending",
            "",
            "chunk-000001.gwc",
            "whole, but never published",
            "chunk-000002.gwc",
            "another"),
        target);
    Packs.append(other, target);
    Packs.assertSameFiles(target, folder.resolve("expected"));
    assertHolds(
        target,
        "chunk-000000.gwc",
        "chunk-000001.gwc",
        "snapshot-000001.gws",
        "snapshot-000002.gws");
  }

  @Test
  void chunks_of_a_snapshot_that_was_lost_are_kept_for_rebuilding() throws IOException {
    pack(source, SMALL_CHUNKS);
    Packs.append(other, target);
    SortedMap<String, byte[]> whole = Trees.read(target);
    Files.delete(target.resolve("snapshot-000002.gws"));
    Path third = Trees.write(Trees.of("d/5", "five"), folder.resolve("third"));
    assertFails(
        Kind.DAMAGED, () -> Packs.append(third, target), "chunk-000001.gwc", "gristway rebuild");
    Rebuilder.rebuild(target, Progress.NONE);
    Packs.assertSameFiles(Trees.read(target), whole);
    Packs.append(third, target);
    assertThat(Packs.labels(target)).hasSize(5);
  }

  @Test
  void a_dataset_that_is_being_replaced_is_not_appended_to() {
    pack(source, SMALL_CHUNKS);
    Packer.pack(
        List.of(source),
        target,
        SMALL_CHUNKS.withForce(true),
        Interference.beforeCopying(
            () ->
                assertFails(
                    Kind.ENVIRONMENT, () -> Packs.append(other, target), target.toString())),
        line -> {});
    Packs.append(other, target);
    assertThat(Packs.labels(target)).hasSize(4);
    assertHolds(folder, "source", "other", "target");
  }

  @Test
  void two_appends_to_one_dataset_do_not_meet() {
    pack(source, SMALL_CHUNKS);
    Packer.append(
        List.of(other),
        target,
        SMALL_CHUNKS,
        Interference.beforeCopying(
            () ->
                assertFails(
                    Kind.ENVIRONMENT, () -> Packs.append(other, target), target.toString())),
        line -> {});
    assertThat(Packs.labels(target)).hasSize(4);
  }

  @Test
  void only_datasets_are_appended_to() throws IOException {
    assertFails(Kind.WRONG_CALL, () -> Packs.append(source, target), target.toString());
    Files.createDirectory(target);
    assertFails(Kind.WRONG_CALL, () -> Packs.append(source, target), "not a dataset");
    assertHolds(target);
    pack(source, SMALL_CHUNKS);
    Path inside = Trees.write(Trees.of("x", "y"), folder.resolve("source"));
    assertFails(Kind.WRONG_CALL, () -> Packs.append(inside.resolve(".."), target), "inside");
    assertHolds(target, "chunk-000000.gwc", "snapshot-000001.gws");
  }

  @Test
  void options_out_of_range_are_refused() {
    assertFails(Kind.WRONG_CALL, () -> SMALL_CHUNKS.withChunkSize((64 << 10) - 1), "64KiB");
    assertFails(Kind.WRONG_CALL, () -> SMALL_CHUNKS.withChunkSize((1 << 30) + 1), "1GiB");
    assertFails(Kind.WRONG_CALL, () -> SMALL_CHUNKS.withThreads(0), "thread");
  }

  @Test
  void progress_adds_up_to_what_was_said() {
    long[] said = new long[2];
    Progress counting =
        new Progress() {
          private boolean copying;

          @Override
          public synchronized void begin(String what, Unit unit, long total) {
            copying = what.equals("packing");
            said[0] = copying ? total : said[0];
          }

          @Override
          public synchronized void advance(long amount) {
            said[1] += copying ? amount : 0;
          }

          @Override
          public void end() {}
        };
    Packer.pack(List.of(source, other), target, SMALL_CHUNKS, counting, line -> {});
    assertThat(said).containsExactly(15, 15);
  }
}
