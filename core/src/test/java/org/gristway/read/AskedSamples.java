package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.LongPredicate;
import java.util.stream.LongStream;
import org.gristway.handover.Batch;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** A dataset, and ways to ask for its samples by index. */
abstract class AskedSamples {

  static final int SAMPLES = 200;
  static final int EXTENT = 8 << 10;
  static final LoaderOptions OPTIONS =
      LoaderOptions.DEFAULT.withExtentBytes(EXTENT).withMemory(12 * EXTENT);

  @TempDir static Path folder;
  static Originals originals;
  private final Remains before = Remains.now();

  @BeforeAll
  static void pack() {
    Random random = new Random(Seeds.of("AskedSamples"));
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < SAMPLES; i++) {
      int size = i % 20 == 0 ? 2 * EXTENT : random.nextInt(3000);
      tree.put("folder" + i % 3 + "/sample" + i, Trees.bytes(random, size));
    }
    originals = Originals.of(Packs.pack(tree, folder.resolve("dataset")));
  }

  @AfterEach
  void nothing_is_left() {
    before.assertNoMore();
  }

  /** All indices of a set in random order, cut into requests of random size. */
  static List<long[]> requests(Random random, LongPredicate isIn, int mostAtOnce) {
    List<Long> indices = new ArrayList<>();
    LongStream.range(0, SAMPLES).filter(isIn).forEach(indices::add);
    Collections.shuffle(indices, random);
    List<long[]> requests = new ArrayList<>();
    for (int at = 0; at < indices.size(); ) {
      int end = Math.min(indices.size(), at + 1 + random.nextInt(mostAtOnce));
      requests.add(indices.subList(at, end).stream().mapToLong(Long::longValue).toArray());
      at = end;
    }
    return requests;
  }

  /** Asks for all and checks that each request is answered place by place. */
  static Received ask(AskedLoader loader, List<long[]> requests) {
    Received received = new Received(originals);
    for (long[] request : requests) {
      Batch batch = loader.get(request);
      assertThat(batch.size()).isEqualTo(request.length);
      for (int i = 0; i < request.length; i++) {
        assertThat(batch.request(i)).isEqualTo(request[i]);
      }
      received.add(batch);
    }
    return received;
  }

  static List<Long> samples(Received received) {
    return received.places().stream().map(Received.Place::sample).toList();
  }
}
