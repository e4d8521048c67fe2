package org.gristway.snapshot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.chunk.Mutations;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.dataset.Verifier;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Snapshots with anything in them: every question is answered, or refused with a reason. */
@Tag("java")
class SnapshotFuzzTest {

  @TempDir Path folder;

  @Test
  void a_mutated_snapshot_is_used_safely_or_refused() throws IOException {
    Random random = new Random(Seeds.of("a_mutated_snapshot_is_used_safely_or_refused"));
    Path parts =
        Trees.write(
            Trees.renamed(Trees.randomParts(random, 25), name -> "p" + name),
            folder.resolve("parts"));
    Path dataset = folder.resolve("dataset");
    Packs.pack(List.of(parts), dataset, Packs.SMALL_CHUNKS.withStemParts(true));
    List<String> keys = Packs.keys(dataset);
    Path snapshot = dataset.resolve(Snapshot.fileName(1));
    byte[] valid = Files.readAllBytes(snapshot);
    int opened = 0;
    int count = Thorough.count(1_000, 100_000);
    for (int i = 0; i < count; i++) {
      byte[] mutated = Mutations.mutate(valid, random);
      byte[] bytes = random.nextInt(4) == 0 ? mutated : Mutations.repairSnapshot(mutated);
      Files.write(snapshot, bytes);
      opened += assertTimeoutPreemptively(Duration.ofSeconds(60), () -> use(dataset, keys)) ? 1 : 0;
      if (i % 8 == 0) {
        assertTimeoutPreemptively(
            Duration.ofSeconds(60), () -> Verifier.verify(dataset, Progress.NONE));
      }
    }
    // Else the mutations never get past the checksums, and this tests nothing.
    assertThat(opened).isGreaterThan(count / 10);
  }

  /** Asks everything that can be asked; true if the snapshot could be opened. */
  static boolean use(Path path, List<String> keys) {
    Dataset[] opened = new Dataset[1];
    attempt(() -> opened[0] = Dataset.open(path));
    if (opened[0] == null) {
      return false;
    }
    try (Dataset dataset = opened[0]) {
      Snapshot snapshot = dataset.snapshot();
      attempt(snapshot::verify);
      for (String key : keys) {
        attempt(() -> dataset.find(key).ifPresent(dataset::read));
        attempt(() -> dataset.find(key + "x"));
        attempt(() -> dataset.list(key));
      }
      attempt(() -> dataset.list(""));
      attempt(() -> dataset.withPrefix("p").forEach(sample -> {}));
      long samples = Math.min(dataset.size(), 500);
      for (long id = 0; id < samples; id++) {
        long each = id;
        attempt(() -> readParts(dataset, dataset.sample(each)));
        attempt(() -> snapshot.location(each));
        attempt(() -> snapshot.inKeyOrder(each));
      }
      for (int label = -1; label < Math.min(snapshot.namedLabelCount(), 100); label++) {
        int each = label;
        attempt(() -> snapshot.labelName(each));
      }
      for (int chunk = 0; chunk < Math.min(snapshot.chunkCount(), 100); chunk++) {
        int each = chunk;
        attempt(() -> snapshot.chunkFileBytes(each));
        attempt(() -> snapshot.firstSample(each + 1));
      }
    }
    return true;
  }

  private static void readParts(Dataset dataset, Sample sample) {
    List<byte[]> parts = new ArrayList<>();
    sample.parts().forEach(part -> parts.add(dataset.read(sample, part)));
    assertThat(parts).hasSize(sample.parts().size());
  }

  private static void attempt(Runnable question) {
    try {
      question.run();
    } catch (Failure refused) {
      assertThat(refused).hasMessageNotContaining("\n");
      assertThat(refused.kind()).as(refused.getMessage()).isIn(Kind.DAMAGED, Kind.WRONG_CALL);
    }
  }
}
