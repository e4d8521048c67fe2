package org.gristway.chunk;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Random;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class ChunkHomesTest {

  @Test
  void equal_chunks_go_round() {
    ChunkHomes homes = ChunkHomes.deal(7, _ -> 64 << 20, 3);
    assertThat(nodes(homes, 7)).containsExactly(0, 1, 2, 0, 1, 2, 0);
  }

  @Test
  void nodes_differ_by_no_more_than_the_largest_chunk() {
    Random random = new Random(Seeds.of("nodes_differ_by_no_more_than_the_largest_chunk"));
    for (int i = 0; i < 200; i++) {
      int count = 1 + random.nextInt(300);
      int nodes = 1 + random.nextInt(20);
      long[] bytes = random.longs(count, 0, 1 << random.nextInt(1, 27)).toArray();
      ChunkHomes homes = ChunkHomes.deal(count, chunk -> bytes[chunk], nodes);
      long[] sums = new long[nodes];
      for (int chunk = 0; chunk < count; chunk++) {
        sums[homes.nodeOf(chunk)] += bytes[chunk];
      }
      long spread = Arrays.stream(sums).max().orElse(0) - Arrays.stream(sums).min().orElse(0);
      assertThat(spread).isLessThanOrEqualTo(Arrays.stream(bytes).max().orElse(0));
    }
  }

  @Test
  void chunks_that_are_added_move_no_others() {
    Random random = new Random(Seeds.of("chunks_that_are_added_move_no_others"));
    long[] bytes = random.longs(100, 0, 1 << 26).toArray();
    int[] all = nodes(ChunkHomes.deal(100, chunk -> bytes[chunk], 7), 100);
    int[] first = nodes(ChunkHomes.deal(60, chunk -> bytes[chunk], 7), 60);
    assertThat(Arrays.copyOf(all, 60)).isEqualTo(first);
  }

  private static int[] nodes(ChunkHomes homes, int chunks) {
    int[] nodes = new int[chunks];
    Arrays.setAll(nodes, homes::nodeOf);
    return nodes;
  }
}
