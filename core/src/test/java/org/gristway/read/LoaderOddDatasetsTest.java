package org.gristway.read;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.gristway.os.Folders;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.Tail;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Datasets at the edges of what there is, by every policy, with every tail, for several ranks. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderOddDatasetsTest {

  private static final int EPOCHS = 3;
  private static final List<Integer> RANKS = List.of(1, 2, 5);

  @TempDir Path folder;
  private final Random random = new Random(Seeds.of("LoaderOddDatasetsTest"));

  /** So many files of a size each, in two folders. */
  private Map<String, byte[]> files(int count, int smallest, int largest) {
    Map<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < count; i++) {
      int size = smallest + random.nextInt(largest - smallest + 1);
      tree.put((i % 2 == 0 ? "even/" : "odd/") + i, Trees.bytes(random, size));
    }
    return tree;
  }

  private List<Integer> anyOf(List<Integer> all) {
    return List.of(all.get(random.nextInt(all.size())));
  }

  private void assertKept(Map<String, byte[]> tree) {
    assertKept(Originals.of(Packs.pack(tree, folder.resolve("dataset"))));
  }

  private void assertKept(Originals originals) {
    for (String policy : LoaderContract.POLICIES) {
      for (Tail tail : Tail.values()) {
        for (int ranks : Thorough.on() ? RANKS : anyOf(RANKS)) {
          LoaderContract.assertKept(
              originals, LoaderContract.anyOptions(random, policy, tail, ranks), EPOCHS);
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void fewer_samples_than_ranks_or_places_do(int samples) {
    assertKept(files(samples, 1, 6000));
  }

  @Test
  void samples_without_bytes_are_delivered() {
    assertKept(files(90, 0, 0));
  }

  @Test
  void samples_with_and_without_bytes_are_delivered() {
    assertKept(files(90, 0, 2));
  }

  @Test
  void samples_larger_than_any_frame_are_delivered() {
    assertKept(files(12, 64 << 10, 200 << 10));
  }

  @Test
  void samples_of_a_frame_or_a_little_more_or_less_are_delivered() {
    assertKept(files(60, 4095, 4097));
  }

  @Test
  void samples_of_several_parts_are_delivered() {
    Path source = Trees.write(Trees.randomParts(random, 60), folder.resolve("source"));
    Path dataset = folder.resolve("dataset");
    Packs.pack(List.of(source), dataset, Packs.SMALL_CHUNKS.withStemParts(true));
    assertKept(Originals.of(dataset));
  }

  @Test
  void a_dataset_in_memory_is_read() throws IOException {
    Path memory = Path.of("/dev/shm");
    assumeTrue(Files.isWritable(memory), "needs /dev/shm");
    Path place = Files.createTempDirectory(memory, "gristway-test-");
    try {
      assertKept(Originals.of(Packs.pack(files(60, 0, 9000), place.resolve("dataset"))));
    } finally {
      Folders.deleteTree(place);
    }
  }
}
