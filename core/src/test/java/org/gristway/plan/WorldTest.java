package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import org.gristway.Failure.Kind;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class WorldTest {

  @Test
  void ranks_are_dealt_to_nodes_in_order_and_evenly() {
    for (int ranks = 1; ranks <= 40; ranks++) {
      for (int nodes = 1; nodes <= ranks; nodes++) {
        int most = 0;
        int next = 0;
        for (int node = 0; node < nodes; node++) {
          World world = new World(ranks, nodes, node);
          assertThat(world.firstRank()).as("%s", world).isEqualTo(next);
          assertThat(world.ranksHere())
              .as("%s", world)
              .isBetween(ranks / nodes, Math.ceilDiv(ranks, nodes));
          for (int lane = 0; lane < world.ranksHere(); lane++) {
            assertThat(world.nodeOf(next)).as("%s", world).isEqualTo(node);
            assertThat(world.laneOf(next)).as("%s", world).isEqualTo(lane);
            next++;
          }
          most = Math.max(most, world.ranksHere());
        }
        World world = new World(ranks, nodes, 0);
        assertThat(next).isEqualTo(ranks).isEqualTo(world.firstRank(nodes));
        assertThat(world.mostRanks()).as("%s", world).isEqualTo(most);
      }
    }
  }

  @Test
  void one_machine_has_all_ranks() {
    assertThat(World.of(7)).isEqualTo(new World(7, 1, 0));
    assertThat(World.of(7).ranksHere()).isEqualTo(7);
  }

  @Test
  void a_reader_may_be_for_one_rank() {
    World world = new World(6, 3, 0).only(3);
    assertThat(world).isEqualTo(new World(6, 3, 1, 3));
    assertThat(world.firstRank()).isEqualTo(3);
    assertThat(world.ranksHere()).isEqualTo(1);
    assertThat(world.mostRanks()).isEqualTo(1);
    assertThat(world.laneOf(3)).isZero();
    assertThat(world.nodeOf(5)).isEqualTo(2);
  }

  @Test
  void a_world_that_cannot_be_is_refused() {
    assertFails(Kind.WRONG_CALL, () -> new World(6, 3, 1, 4), "node 1 of 3 has no rank 4");
    assertFails(Kind.WRONG_CALL, () -> World.of(0));
    assertFails(Kind.WRONG_CALL, () -> World.of(-1));
    assertFails(Kind.WRONG_CALL, () -> new World(2, 3, 0), "2 ranks", "3 nodes");
    assertFails(Kind.WRONG_CALL, () -> new World(2, 0, 0));
    assertFails(Kind.WRONG_CALL, () -> new World(2, 2, 2));
    assertFails(Kind.WRONG_CALL, () -> new World(2, 2, -1));
  }
}
