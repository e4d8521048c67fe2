package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.SortedMap;
import org.gristway.chunk.Extent;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The same sources and seed make the same bytes; another seed makes another layout of them. */
@Tag("java")
class DeterminismTest {

  @TempDir Path folder;

  @Test
  void the_number_of_threads_changes_nothing() {
    Random random = new Random(Seeds.of("the_number_of_threads_changes_nothing"));
    SortedMap<String, byte[]> parts = Trees.randomParts(random, 60);
    List<Path> sources =
        List.of(
            Trees.write(
                Trees.renamed(Trees.random(random, 200), name -> "f" + name),
                folder.resolve("source")),
            Trees.tar(Trees.renamed(parts, name -> "t" + name), folder.resolve("t.tar")),
            Trees.tar(Trees.renamed(parts, name -> "g" + name), folder.resolve("g.tgz")),
            Trees.zip(Trees.renamed(parts, name -> "z" + name), folder.resolve("z.zip")));
    Path one = folder.resolve("1");
    Packs.pack(sources, one, Packs.SMALL_CHUNKS.withThreads(1));
    for (int threads : List.of(2, 8, 16)) {
      Path several = folder.resolve("" + threads);
      Packs.pack(sources, several, Packs.SMALL_CHUNKS.withThreads(threads));
      Packs.assertSameFiles(one, several);
    }
  }

  @Test
  void times_places_and_the_order_of_creation_change_nothing() throws IOException {
    Random random = new Random(Seeds.of("times_places_and_the_order_of_creation_change_nothing"));
    SortedMap<String, byte[]> tree = Trees.random(random, 150);
    Path source = Trees.write(tree, folder.resolve("source"));
    Packs.pack(source, folder.resolve("one"));

    List<String> names = new ArrayList<>(tree.keySet());
    Collections.shuffle(names, random);
    Map<String, byte[]> shuffled = new LinkedHashMap<>();
    names.forEach(name -> shuffled.put(name, tree.get(name)));
    Path elsewhere = Trees.write(shuffled, folder.resolve("else/where"));
    for (String name : names) {
      FileTime time = FileTime.fromMillis(random.nextInt());
      Files.setLastModifiedTime(elsewhere.resolve(name), time);
    }
    Packs.pack(elsewhere, folder.resolve("two"));
    Packs.assertSameFiles(folder.resolve("one"), folder.resolve("two"));
  }

  @Test
  void appending_is_the_same_each_time() {
    Random random = new Random(Seeds.of("appending_is_the_same_each_time"));
    Path source = Trees.write(Trees.random(random, 50), folder.resolve("source"));
    Path more =
        Trees.write(
            Trees.renamed(Trees.random(random, 50), name -> "m" + name), folder.resolve("more"));
    for (String name : List.of("one", "two")) {
      Packs.pack(source, folder.resolve(name));
      Packs.append(
          List.of(more),
          folder.resolve(name),
          Packs.SMALL_CHUNKS.withThreads(name.equals("one") ? 1 : 8));
    }
    Packs.assertSameFiles(folder.resolve("one"), folder.resolve("two"));
  }

  @Test
  void another_seed_makes_another_layout_of_the_same_content() {
    Random random = new Random(Seeds.of("another_seed_makes_another_layout"));
    Path source = Trees.write(Trees.random(random, 100), folder.resolve("source"));
    Path one = folder.resolve("one");
    Path two = folder.resolve("two");
    Packs.pack(List.of(source), one, Packs.SMALL_CHUNKS.withSeed(1));
    Packs.pack(List.of(source), two, Packs.SMALL_CHUNKS.withSeed(2));
    assertThat(Packs.keys(one)).isNotEqualTo(Packs.keys(two));
    assertThat(Packs.contents(one)).isEqualTo(Packs.contents(two));
  }

  @Test
  void source_order_is_kept_if_asked_and_else_not() {
    Random random = new Random(Seeds.of("source_order_is_kept_if_asked_and_else_not"));
    SortedMap<String, byte[]> tree = Trees.random(random, 100);
    Path source = Trees.write(tree, folder.resolve("source"));
    Path kept = folder.resolve("kept");
    Packs.pack(List.of(source), kept, Packs.SMALL_CHUNKS.withKeepOrder(true));
    assertThat(Packs.keys(kept)).isEqualTo(List.copyOf(tree.keySet()));
    Path mixed = folder.resolve("mixed");
    Packs.pack(source, mixed);
    assertThat(Packs.keys(mixed)).isNotEqualTo(List.copyOf(tree.keySet()));
  }

  @Test
  void chunks_and_runs_within_them_mix_the_classes() {
    long seed = Seeds.of("chunks_and_runs_within_them_mix_the_classes");
    Random random = new Random(seed);
    SortedMap<String, byte[]> tree = Trees.of();
    for (int i = 0; i < 4000; i++) {
      tree.put("class" + i / 200 + "/" + i, Trees.bytes(random, 2000 + random.nextInt(2000)));
    }
    Path zip = Trees.zip(tree, folder.resolve("source.zip"));
    Path dataset = folder.resolve("dataset");
    Packs.pack(List.of(zip), dataset, PackOptions.DEFAULT.withChunkSize(4 << 20).withSeed(seed));
    Map<String, Set<Integer>> classes = new LinkedHashMap<>(); // by chunk, and by MiB in it
    try (Dataset open = Dataset.open(dataset)) {
      assertThat(open.snapshot().chunkCount()).isBetween(3, 4);
      for (Sample sample : open) {
        Extent place = open.snapshot().location(sample.id());
        for (String run :
            List.of("" + place.chunk(), place.chunk() + " " + place.offset() / (1 << 20))) {
          classes.computeIfAbsent(run, fresh -> new HashSet<>()).add(sample.label());
        }
      }
    }
    // A MiB holds some 350 samples: 20 classes, each missed with a chance of 10^-8.
    int lastRuns = 2;
    assertThat(classes.values()).filteredOn(mixed -> mixed.size() < 18).hasSizeLessThan(lastRuns);
  }
}
