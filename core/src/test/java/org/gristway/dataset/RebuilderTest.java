package org.gristway.dataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.SortedMap;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.chunk.Mutations;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class RebuilderTest {

  @TempDir Path folder;
  private Path dataset;
  private SortedMap<String, byte[]> files;

  /** Three versions, with classes that only the later ones have. */
  @BeforeEach
  void packThreeVersions() {
    Random random = new Random(Seeds.of("RebuilderTest"));
    dataset = folder.resolve("dataset");
    for (int version = 1; version <= 3; version++) {
      String prefix = "v" + version;
      Path source =
          Trees.write(
              Trees.renamed(Trees.randomParts(random, 25), name -> prefix + name),
              folder.resolve(prefix));
      var options = Packs.SMALL_CHUNKS.withStemParts(true);
      if (version == 1) {
        Packs.pack(List.of(source), dataset, options);
      } else {
        Packs.append(List.of(source), dataset, options);
      }
    }
    files = Trees.read(dataset);
  }

  private Rebuilder.Report rebuild() {
    return Rebuilder.rebuild(dataset, Progress.NONE);
  }

  private String lastChunk() {
    return files.headMap("snapshot").lastKey();
  }

  @Test
  void lost_snapshots_come_back_byte_for_byte() throws IOException {
    for (int version = 1; version <= 3; version++) {
      Files.delete(dataset.resolve("snapshot-00000" + version + ".gws"));
    }
    assertThat(rebuild()).isEqualTo(new Rebuilder.Report(List.of(1, 2, 3), List.of(), List.of()));
    Packs.assertSameFiles(Trees.read(dataset), files);
    assertThat(Verifier.verify(dataset, Progress.NONE).faults()).isEmpty();
  }

  @Test
  void a_damaged_snapshot_is_replaced_and_the_others_are_left() throws IOException {
    byte[] damaged = files.get("snapshot-000002.gws").clone();
    damaged[damaged.length / 2] ^= 1;
    Files.write(dataset.resolve("snapshot-000002.gws"), damaged);
    assertThat(rebuild()).isEqualTo(new Rebuilder.Report(List.of(2), List.of(1, 3), List.of()));
    Packs.assertSameFiles(Trees.read(dataset), files);
  }

  @Test
  void a_sound_dataset_stays_untouched() throws IOException {
    Path snapshot = dataset.resolve("snapshot-000003.gws");
    var time = Files.getLastModifiedTime(snapshot);
    assertThat(rebuild()).isEqualTo(new Rebuilder.Report(List.of(), List.of(1, 2, 3), List.of()));
    assertThat(Files.getLastModifiedTime(snapshot)).isEqualTo(time);
    Packs.assertSameFiles(Trees.read(dataset), files);
    Packs.assertHolds(dataset, files.keySet().toArray(String[]::new));
  }

  @Test
  void a_missing_chunk_is_named_and_nothing_changed() throws IOException {
    Files.delete(dataset.resolve("chunk-000001.gwc"));
    Files.delete(dataset.resolve("snapshot-000003.gws"));
    SortedMap<String, byte[]> before = Trees.read(dataset);
    assertFails(Kind.DAMAGED, this::rebuild, "chunk-000001.gwc", "missing");
    Packs.assertSameFiles(Trees.read(dataset), before);
    Packs.assertHolds(dataset, before.keySet().toArray(String[]::new));
  }

  @Test
  void a_version_whose_last_chunk_is_missing_is_not_forgotten() throws IOException {
    Files.delete(dataset.resolve(lastChunk()));
    assertFails(Kind.DAMAGED, this::rebuild, "version 3", dataset.toString());
  }

  @Test
  void chunks_without_their_versions_last_are_told_as_loose() throws IOException {
    Files.delete(dataset.resolve(lastChunk()));
    Files.delete(dataset.resolve("snapshot-000003.gws"));
    List<Integer> loose;
    try (Dataset second = Dataset.open(dataset, 2)) {
      int first = second.snapshot().chunkCount();
      int count = files.headMap("snapshot").size() - 1 - first;
      loose = java.util.stream.IntStream.range(first, first + count).boxed().toList();
    }
    assertThat(loose).isNotEmpty();
    assertThat(rebuild()).isEqualTo(new Rebuilder.Report(List.of(), List.of(1, 2), loose));
  }

  @Test
  void damaged_chunks_are_named() throws IOException {
    Files.delete(dataset.resolve("snapshot-000003.gws"));
    byte[] chunk = files.get("chunk-000000.gwc").clone();
    for (int at : new int[] {0, 20, 130, chunk.length - 1}) {
      byte[] flipped = chunk.clone();
      flipped[at] ^= 1;
      Files.write(dataset.resolve("chunk-000000.gwc"), flipped);
      assertFails(Kind.DAMAGED, this::rebuild, "chunk-000000.gwc");
    }
    for (int length : new int[] {0, 100, chunk.length - 1}) {
      Files.write(dataset.resolve("chunk-000000.gwc"), Arrays.copyOf(chunk, length));
      assertFails(Kind.DAMAGED, this::rebuild, "chunk-000000.gwc");
    }
  }

  @Test
  void chunks_in_the_wrong_place_are_named() throws IOException {
    Files.write(dataset.resolve("chunk-000001.gwc"), files.get("chunk-000000.gwc"));
    assertFails(Kind.DAMAGED, this::rebuild, "chunk-000001.gwc", "chunk 0");
  }

  @Test
  void a_first_chunk_that_begins_in_the_middle_is_named() throws IOException {
    byte[] chunk = files.get("chunk-000000.gwc").clone();
    chunk[44] = 1; // the number of its first sample is over four billion
    Files.write(dataset.resolve("chunk-000000.gwc"), Mutations.repairChunk(chunk));
    assertFails(Kind.DAMAGED, this::rebuild, "chunk-000000.gwc");
    chunk[44] = 0;
    chunk[42] = 1;
    Files.write(dataset.resolve("chunk-000000.gwc"), Mutations.repairChunk(chunk));
    assertFails(Kind.DAMAGED, this::rebuild, "chunk-000000.gwc", "not the first ones");
  }

  @Test
  void what_is_no_dataset_is_refused() {
    assertFails(
        Kind.WRONG_CALL, () -> Rebuilder.rebuild(folder.resolve("none"), Progress.NONE), "none");
    assertFails(
        Kind.WRONG_CALL, () -> Rebuilder.rebuild(folder.resolve("v1"), Progress.NONE), "v1");
  }

  @Test
  void nothing_is_rebuilt_while_somebody_changes_the_dataset() {
    try (var change = DatasetFolder.at(dataset).change()) {
      assertThat(change.scratch()).isDirectory();
      assertFails(Kind.ENVIRONMENT, this::rebuild, dataset.toString());
    }
    rebuild();
  }
}
