package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.SortedMap;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.dataset.Unpacker;
import org.gristway.dataset.Verifier;
import org.gristway.pack.Packs.Content;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Tag("java")
class RoundTripTest {

  /** The ways in which a tree can be a source. */
  enum Form {
    FOLDER,
    FOLDER_OF_PARTS,
    TAR,
    TAR_GZ,
    ZIP,
    ZIP_OF_PARTS;

    boolean stem() {
      return this != FOLDER && this != ZIP;
    }

    boolean classes() {
      return this != TAR && this != TAR_GZ;
    }

    Path write(Map<String, byte[]> tree, Path folder) {
      return switch (this) {
        case FOLDER, FOLDER_OF_PARTS -> Trees.write(tree, folder.resolve("source"));
        case TAR -> Trees.tar(tree, folder.resolve("source.tar"));
        case TAR_GZ -> Trees.tar(tree, folder.resolve("source.tar.gz"));
        case ZIP, ZIP_OF_PARTS -> Trees.zip(tree, folder.resolve("source.zip"));
      };
    }
  }

  @TempDir Path folder;

  @ParameterizedTest
  @EnumSource
  void what_was_packed_is_what_is_read(Form form) {
    Random random = new Random(Seeds.of("what_was_packed_is_what_is_read " + form));
    for (int i = 0; i < Thorough.count(2, 20); i++) {
      Path room = Trees.write(Map.of(), folder.resolve("run" + i));
      SortedMap<String, byte[]> tree =
          form.stem() ? Trees.randomParts(random, 60) : Trees.random(random, 120);
      PackOptions options =
          PackOptions.DEFAULT
              .withChunkSize((64 << 10) + random.nextInt(1 << 20))
              .withStemParts(form.stem())
              .withKeepOrder(random.nextBoolean())
              .withSeed(random.nextLong())
              .withThreads(1 + random.nextInt(8));
      Path dataset = room.resolve("dataset");
      PackReport report = Packs.pack(List.of(form.write(tree, room)), dataset, options);

      SortedMap<String, Content> expected =
          Model.of(new Model.Files(tree, form.stem(), form.classes()));
      assertThat(Packs.contents(dataset)).isEqualTo(expected);
      assertThat(report.samples()).isEqualTo(expected.size());
      assertThat(report.bytes())
          .isEqualTo(tree.values().stream().mapToLong(bytes -> bytes.length).sum());
      assertThat(report.leftOut()).isZero();
      assertThat(Verifier.verify(dataset, Progress.NONE).faults()).isEmpty();
      assertFindsAndLists(dataset, expected.keySet());
      Unpacker.unpack(dataset, room.resolve("unpacked"), Progress.NONE);
      Packs.assertSameFiles(Trees.read(room.resolve("unpacked")), tree);
    }
  }

  private static void assertFindsAndLists(Path path, Set<String> keys) {
    List<String> inOrder = List.copyOf(keys);
    try (Dataset dataset = Dataset.open(path)) {
      for (String key : keys) {
        assertThat(dataset.find(key)).map(Sample::key).contains(key);
        assertThat(dataset.find(key + "x")).isEmpty();
        assertThat(dataset.find(key.substring(1)).isPresent())
            .isEqualTo(keys.contains(key.substring(1)));
        for (String prefix : List.of(key, key.substring(0, key.offsetByCodePoints(0, 1)))) {
          assertThat(keysOf(dataset.withPrefix(prefix)))
              .isEqualTo(inOrder.stream().filter(each -> each.startsWith(prefix)).toList());
        }
        assertThat(dataset.list(key)).isEmpty();
      }
      assertThat(keysOf(dataset.withPrefix(""))).isEqualTo(inOrder);
      for (String each : Model.folders(keys)) {
        assertThat(dataset.list(each)).isEqualTo(Model.children(keys, each));
        assertThat(dataset.list(each + "/no such folder")).isEmpty();
      }
      assertThat(dataset.find("")).isEmpty();
      assertThat(dataset.find("/")).isEmpty();
    }
  }

  private static List<String> keysOf(Iterable<Sample> samples) {
    List<String> keys = new ArrayList<>();
    samples.forEach(sample -> keys.add(sample.key()));
    return keys;
  }

  @Test
  void several_sources_of_all_kinds_make_one_dataset() {
    Random random = new Random(Seeds.of("several_sources_of_all_kinds_make_one_dataset"));
    List<Path> sources = new ArrayList<>();
    List<Model.Files> files = new ArrayList<>();
    for (Form form : Form.values()) {
      String prefix = form.ordinal() + "-";
      Map<String, byte[]> tree =
          Trees.renamed(Trees.randomParts(random, 30), name -> prefix + name);
      sources.add(form.write(tree, Trees.write(Map.of(), folder.resolve(form.name()))));
      files.add(new Model.Files(tree, true, form.classes()));
    }
    Path dataset = folder.resolve("dataset");
    Packs.pack(sources, dataset, Packs.SMALL_CHUNKS.withStemParts(true));
    assertThat(Packs.contents(dataset)).isEqualTo(Model.of(files.toArray(Model.Files[]::new)));
    assertThat(Verifier.verify(dataset, Progress.NONE).faults()).isEmpty();
  }

  @Test
  void appended_samples_join_those_that_were_there() {
    Random random = new Random(Seeds.of("appended_samples_join_those_that_were_there"));
    Path dataset = folder.resolve("dataset");
    SortedMap<String, byte[]> all = Trees.random(random, 0);
    for (int version = 1; version <= 4; version++) {
      String prefix = version + "/";
      Map<String, byte[]> tree = Trees.renamed(Trees.random(random, 40), name -> prefix + name);
      all.putAll(tree);
      Path source = Trees.write(tree, folder.resolve("source" + version));
      PackReport report =
          version == 1 ? Packs.pack(List.of(source), dataset, Packs.SMALL_CHUNKS) : null;
      if (version > 1) {
        report = Packs.append(source, dataset);
      }
      assertThat(report.version()).isEqualTo(version);
      assertThat(Packs.contents(dataset)).isEqualTo(Model.of(new Model.Files(all, false, true)));
      assertThat(Verifier.verify(dataset, Progress.NONE).faults()).isEmpty();
      try (Dataset first = Dataset.open(dataset, 1)) {
        assertThat(first.size()).isEqualTo(40);
      }
    }
  }

  @Test
  void a_dataset_that_is_open_stays_what_it_was_while_it_is_appended_to() {
    Path dataset = Packs.pack(Trees.of("a/1", "one", "a/2", "two"), folder.resolve("dataset"));
    Path more = Trees.write(Trees.of("b/3", "three"), folder.resolve("more"));
    try (Dataset open = Dataset.open(dataset)) {
      Packs.append(more, dataset);
      assertThat(open.size()).isEqualTo(2);
      assertThat(open.find("b/3")).isEmpty();
      assertThat(open.read(open.find("a/1").orElseThrow())).isEqualTo("one".getBytes());
    }
    assertThat(Packs.labels(dataset)).isEqualTo(Map.of("a/1", 0, "a/2", 0, "b/3", 1));
  }
}
