package org.gristway.dataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;
import static org.gristway.pack.Packs.assertFails;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.pack.Packs;
import org.gristway.pack.Packs.Content;
import org.gristway.pack.Trees;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Damage of all kinds to a dataset of two versions, several chunks and samples of several parts:
 * verifying finds it, and nobody who reads ever gets wrong bytes.
 */
@Tag("java")
class DamageTest {

  @TempDir Path folder;
  private Path dataset;
  private SortedMap<String, byte[]> files;
  private SortedMap<String, Content> contents;
  private List<String> listing;

  @BeforeEach
  void packTwice() {
    Random random = new Random(20250101);
    dataset = folder.resolve("dataset");
    var options = Packs.SMALL_CHUNKS.withStemParts(true);
    Path source = Trees.write(Trees.randomParts(random, 40), folder.resolve("source"));
    Packs.pack(List.of(source), dataset, options);
    Path tar = folder.resolve("more.tar");
    Trees.tar(Map.of("more/1.jpg", new byte[900], "more/2.txt", new byte[0]), tar);
    Packs.append(List.of(tar), dataset, options);
    files = Trees.read(dataset);
    contents = Packs.contents(dataset);
    listing = list();
    assertThat(files.keySet()).hasSizeGreaterThan(5);
  }

  private List<String> list() {
    try (Dataset open = Dataset.open(dataset)) {
      return open.list("");
    }
  }

  private List<String> faults() {
    return Verifier.verify(dataset, Progress.NONE).faults();
  }

  private void write(String name, byte[] bytes) {
    try {
      Files.write(dataset.resolve(name), bytes);
    } catch (IOException failed) {
      throw new java.io.UncheckedIOException(failed);
    }
  }

  /** A byte of a file, as often near its ends as in between. */
  private static int position(Random random, int size) {
    return switch (random.nextInt(4)) {
      case 0 -> random.nextInt(Math.min(size, 400));
      case 1 -> size - 1 - random.nextInt(Math.min(size, 64));
      default -> random.nextInt(size);
    };
  }

  private String anyFile(Random random) {
    List<String> names = new ArrayList<>(files.keySet());
    return names.get(random.nextInt(names.size()));
  }

  @Test
  void a_sound_dataset_has_no_faults() {
    Verifier.Report report = Verifier.verify(dataset, Progress.NONE);
    assertThat(report.faults()).isEmpty();
    assertThat(report.samples()).isEqualTo(contents.size());
    assertThat(report.chunks()).isEqualTo(files.size() - 2);
  }

  @Test
  void a_flipped_byte_anywhere_is_found_and_never_read() {
    Random random = new Random(Seeds.of("a_flipped_byte_anywhere_is_found_and_never_read"));
    for (int i = 0; i < Thorough.count(60, 1000); i++) {
      String name = anyFile(random);
      byte[] flipped = files.get(name).clone();
      int at = position(random, flipped.length);
      flipped[at] ^= (byte) (1 + random.nextInt(255));
      write(name, flipped);
      assertThat(faults()).as("byte %d of %s", at, name).anyMatch(line -> line.contains(name));
      assertReadsRightOrNot();
      write(name, files.get(name));
    }
    assertThat(faults()).isEmpty();
  }

  @Test
  void a_file_of_another_length_is_found_and_never_read() {
    Random random = new Random(Seeds.of("a_file_of_another_length_is_found_and_never_read"));
    for (int i = 0; i < Thorough.count(20, 200); i++) {
      String name = anyFile(random);
      int size = files.get(name).length;
      int length = i % 5 == 0 ? size + 1 + random.nextInt(9) : position(random, size);
      write(name, Arrays.copyOf(files.get(name), i == 1 ? 0 : length));
      assertThat(faults()).as("%d bytes of %s", length, name).anyMatch(line -> line.contains(name));
      assertReadsRightOrNot();
      write(name, files.get(name));
    }
    assertThat(faults()).isEmpty();
  }

  /** Everything that is asked for is right, or a failure that says "damaged". */
  private void assertReadsRightOrNot() {
    Dataset open = orDamaged(() -> Dataset.open(dataset));
    if (open == null) {
      return;
    }
    try (open) {
      assertThat(open.size()).isEqualTo(contents.size());
      contents.forEach(
          (key, content) -> {
            Content read = orDamaged(() -> Packs.content(open, open.find(key).orElseThrow()));
            if (read != null) {
              assertThat(read).isEqualTo(content);
            }
            Boolean found = orDamaged(() -> open.find(key + " ").isPresent());
            assertThat(found == null || !found).isTrue();
          });
      for (long id = 0; id < open.size(); id++) {
        long each = id;
        Sample sample = orDamaged(() -> open.sample(each));
        if (sample != null) {
          assertThat(contents.get(sample.key()).label()).isEqualTo(sample.label());
        }
      }
      List<String> names = orDamaged(() -> open.list(""));
      assertThat(names == null || names.equals(listing)).isTrue();
    }
  }

  /** What the call returns, or null if it found damage. */
  private static <T> T orDamaged(java.util.function.Supplier<T> call) {
    try {
      return call.get();
    } catch (Failure failure) {
      if (failure.kind() != Kind.DAMAGED) {
        fail("of the wrong kind", failure);
      }
      return null;
    }
  }

  @Test
  void a_damaged_sample_is_named_and_all_damage_is_told() {
    Set<String> keys = new java.util.TreeSet<>();
    Map<String, byte[]> damaged = new TreeMap<>();
    try (Dataset open = Dataset.open(dataset)) {
      for (Sample sample : open) {
        if (sample.length() > 0 && sample.id() % 5 == 0) {
          var place = open.snapshot().location(sample.id());
          String name = org.gristway.chunk.ChunkFormat.fileName(place.chunk());
          byte[] bytes = damaged.computeIfAbsent(name, each -> files.get(each).clone());
          bytes[(int) place.offset()] ^= 1;
          keys.add(sample.key());
        }
      }
    }
    damaged.forEach(this::write);
    List<String> faults = faults();
    assertThat(faults).hasSize(keys.size());
    try (Dataset open = Dataset.open(dataset)) {
      for (String key : keys) {
        assertThat(faults).anyMatch(line -> line.contains("'" + oneLine(key) + "'"));
        assertFails(
            Kind.DAMAGED, () -> open.read(open.find(key).orElseThrow()), ".gwc", oneLine(key));
      }
    }
  }

  private static String oneLine(String key) {
    return key.replace("\n", "\\n");
  }

  @Test
  void a_missing_chunk_is_named() throws IOException {
    for (String name : List.of("chunk-000000.gwc", "chunk-000001.gwc")) {
      Files.delete(dataset.resolve(name));
      assertThat(faults()).singleElement().asString().contains(name, "missing");
      assertReadsRightOrNot();
      write(name, files.get(name));
    }
  }

  @Test
  void a_missing_snapshot_is_named() throws IOException {
    Files.delete(dataset.resolve("snapshot-000001.gws"));
    assertThat(faults()).singleElement().asString().contains("snapshot-000001.gws", "rebuild");
    Files.delete(dataset.resolve("snapshot-000002.gws"));
    assertThat(faults()).singleElement().asString().contains("no snapshot", "rebuild");
    assertFails(Kind.DAMAGED, () -> Dataset.open(dataset), "rebuild");
  }

  @Test
  void chunks_of_a_lost_newest_snapshot_are_told_and_kept() throws IOException {
    Files.delete(dataset.resolve("snapshot-000002.gws"));
    assertThat(faults()).singleElement().asString().contains("no snapshot names it", "rebuild");
    Path more = Trees.write(Trees.of("more.txt", "more"), folder.resolve("more"));
    assertFails(Kind.DAMAGED, () -> Packs.append(more, dataset), "no snapshot names it", "rebuild");
    Rebuilder.rebuild(dataset, Progress.NONE);
    assertThat(faults()).isEmpty();
  }

  @Test
  void chunks_of_a_damaged_newest_snapshot_are_verified_all_the_same() {
    byte[] snapshot = files.get("snapshot-000002.gws").clone();
    snapshot[20] ^= 1;
    write("snapshot-000002.gws", snapshot);
    String last =
        files.keySet().stream().filter(name -> name.endsWith(".gwc")).sorted().toList().getLast();
    byte[] chunk = files.get(last).clone();
    chunk[4096] ^= 1;
    write(last, chunk);
    assertThat(faults()).hasSize(2).anyMatch(line -> line.contains(last));
  }

  @Test
  void an_older_snapshot_of_another_dataset_is_found() throws IOException {
    SortedMap<String, byte[]> other = Trees.read(folder.resolve("source"));
    other.values().forEach(bytes -> Arrays.fill(bytes, (byte) 'x'));
    Path impostor = folder.resolve("impostor");
    Path source = Trees.write(other, folder.resolve("other"));
    Packs.pack(List.of(source), impostor, Packs.SMALL_CHUNKS.withStemParts(true));
    write("snapshot-000001.gws", Files.readAllBytes(impostor.resolve("snapshot-000001.gws")));
    assertThat(faults())
        .singleElement()
        .asString()
        .contains("snapshot-000001.gws", "another dataset");
  }

  @Test
  void a_chunk_of_another_dataset_is_known_without_any_snapshot() throws IOException {
    SortedMap<String, byte[]> other = Trees.read(folder.resolve("source"));
    other.values().forEach(bytes -> Arrays.fill(bytes, (byte) 'x')); // same names and lengths
    Path impostor = folder.resolve("impostor");
    Path source = Trees.write(other, folder.resolve("other"));
    Packs.pack(List.of(source), impostor, Packs.SMALL_CHUNKS.withStemParts(true));
    write("chunk-000001.gwc", Files.readAllBytes(impostor.resolve("chunk-000001.gwc")));
    Files.delete(dataset.resolve("snapshot-000001.gws"));
    Files.delete(dataset.resolve("snapshot-000002.gws"));
    assertFails(
        Kind.DAMAGED, () -> Rebuilder.rebuild(dataset, Progress.NONE), "chunk-00000", "not");
  }

  @Test
  void a_chunk_of_another_dataset_is_found_and_never_read() throws IOException {
    SortedMap<String, byte[]> other = Trees.read(folder.resolve("source"));
    other.values().forEach(bytes -> Arrays.fill(bytes, (byte) 'x')); // same names and lengths
    Path impostor = folder.resolve("impostor");
    Path source = Trees.write(other, folder.resolve("other"));
    Packs.pack(List.of(source), impostor, Packs.SMALL_CHUNKS.withStemParts(true));
    String name = "chunk-000001.gwc";
    assertThat(Files.size(impostor.resolve(name))).isEqualTo(files.get(name).length);
    Files.copy(impostor.resolve(name), dataset.resolve(name), StandardCopyOption.REPLACE_EXISTING);
    assertThat(faults()).singleElement().asString().contains(name, "another dataset");
    assertReadsRightOrNot();
  }

  @Test
  void chunks_under_each_others_names_are_found_and_never_read() {
    write("chunk-000000.gwc", files.get("chunk-000001.gwc"));
    write("chunk-000001.gwc", files.get("chunk-000000.gwc"));
    assertThat(faults()).hasSize(2);
    assertReadsRightOrNot();
  }

  @Test
  void a_snapshot_under_the_name_of_another_version_is_found() {
    write("snapshot-000001.gws", files.get("snapshot-000002.gws"));
    assertThat(faults()).singleElement().asString().contains("snapshot-000001.gws", "version 2");
  }
}
