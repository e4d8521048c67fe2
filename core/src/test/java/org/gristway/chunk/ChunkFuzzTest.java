package org.gristway.chunk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.dataset.Rebuilder;
import org.gristway.dataset.Verifier;
import org.gristway.os.NativeFile;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Chunks with anything in them: read completely, or refused by a failure that says why. */
@Tag("java")
class ChunkFuzzTest {

  @TempDir Path folder;

  @Test
  void a_mutated_chunk_is_read_safely_or_refused() throws IOException {
    Random random = new Random(Seeds.of("a_mutated_chunk_is_read_safely_or_refused"));
    List<byte[]> valid = validChunks(random);
    Path dataset = Files.createDirectory(folder.resolve("mutated"));
    Path chunk = dataset.resolve(ChunkFormat.fileName(0));
    int read = 0;
    int count = Thorough.count(2_000, 100_000);
    for (int i = 0; i < count; i++) {
      byte[] mutated = Mutations.mutate(valid.get(random.nextInt(valid.size())), random);
      byte[] bytes = random.nextInt(4) == 0 ? mutated : Mutations.repairChunk(mutated);
      Files.write(chunk, bytes);
      read += assertTimeoutPreemptively(Duration.ofSeconds(60), () -> use(chunk)) ? 1 : 0;
      if (i % 10 == 0) {
        assertTimeoutPreemptively(Duration.ofSeconds(60), () -> useFolder(dataset));
      }
    }
    // Else the mutations never get past the checksums, and this tests nothing.
    assertThat(read).isGreaterThan(count / 50);
  }

  private List<byte[]> validChunks(Random random) throws IOException {
    Path parts =
        Trees.write(
            Trees.renamed(Trees.randomParts(random, 12), name -> "p/" + name),
            folder.resolve("parts"));
    Path dataset = folder.resolve("dataset");
    Packs.pack(List.of(parts), dataset, Packs.SMALL_CHUNKS.withStemParts(true));
    Path tiny = Packs.pack(Trees.of("a/1", "one", "b/2", "", "c", "3"), folder.resolve("tiny"));
    List<byte[]> chunks = new ArrayList<>();
    for (Path each : List.of(dataset, tiny)) {
      for (Map.Entry<String, byte[]> file : Trees.read(each).entrySet()) {
        if (file.getKey().startsWith("chunk") && file.getValue().length < 100_000) {
          chunks.add(file.getValue());
        }
      }
    }
    return chunks;
  }

  /** Uses all of a chunk; true if it was accepted. */
  static boolean use(Path path) throws IOException {
    try (Arena arena = Arena.ofConfined();
        NativeFile file = NativeFile.openToRead(path)) {
      ChunkTable table = ChunkTable.read(file, arena);
      long end = 0;
      for (int i = 0; i < table.sampleCount(); i++) {
        SampleEntry sample = table.sample(i);
        assertThat(table.start(i)).isEqualTo(end);
        end += sample.length();
        assertThat(table.end(i)).isEqualTo(end);
        assertThat(Key.fault(sample.key())).isNull();
        assertThat(sample.partEnds()).isSorted().hasSize(sample.shape().size());
        assertThat(sample.label()).isGreaterThanOrEqualTo(-1);
      }
      assertThat(end).isEqualTo(table.header().dataBytes());
      assertThat(table.header().dataOffset()).isLessThanOrEqualTo(ChunkFormat.MAX_TABLE_BYTES);
      assertThat(table.header().fileBytes()).isEqualTo(file.size());
      return true;
    } catch (Failure refused) {
      assertRefusal(refused);
      return false;
    }
  }

  private static void useFolder(Path dataset) {
    try {
      Verifier.verify(dataset, Progress.NONE);
      Rebuilder.rebuild(dataset, Progress.NONE);
      Packs.contents(dataset);
    } catch (Failure refused) {
      assertRefusal(refused);
    } finally {
      dataset.resolve("snapshot-000001.gws").toFile().delete();
    }
  }

  private static void assertRefusal(Failure refused) {
    assertThat(refused).hasMessageNotContaining("\n");
    assertThat(refused.kind()).as(refused.getMessage()).isIn(Kind.DAMAGED, Kind.WRONG_CALL);
  }
}
