package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.gristway.chunk.ChunkHomes;
import org.gristway.plan.Homes;
import org.gristway.plan.PlanCase;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.World;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Extents at home on the node that has their chunk. */
@Tag("java")
class PlacedHomesTest extends HomesContract {

  @Override
  ReadPolicy policy() {
    return new ChunkShufflePolicy();
  }

  @Override
  Homes homes() {
    return Homes.PLACED;
  }

  @Override
  int[] alikeOn(PlanCase each) {
    return new int[] {each.inputs().world().nodes()};
  }

  @Test
  void a_node_reads_its_own_chunks_and_no_others() {
    forEveryCase(
        each -> {
          World world = each.inputs().world();
          ChunkHomes chunks =
              ChunkHomes.deal(each.layout().chunkCount(), each.layout()::chunkBytes, world.nodes());
          List<List<PlanStep>> lanes = Pulled.byRank(each.plan());
          for (int rank = 0; rank < each.ranks(); rank++) {
            int node = world.nodeOf(rank);
            assertThat(Pulled.of(Load.class, lanes.get(rank)))
                .allMatch(load -> chunks.nodeOf(load.extent().chunk()) == node);
          }
        });
  }

  @Test
  void the_order_depends_on_the_nodes() {
    boolean[] differs = {false};
    forEveryCase(
        each -> {
          List<Pulled.Place> onOne = Pulled.places(each.withNodes(1).plan());
          differs[0] |= !Pulled.places(each.plan()).equals(onOne);
        });
    assertThat(differs[0]).isTrue();
  }
}
