package org.gristway.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import org.gristway.plan.Exchange;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class ParcelsTest {

  /** Four ranks on two nodes, and links of 1 MB a second. */
  private static Parcels parcels() {
    Scenario scenario =
        Scenario.parse(
            """
            name: four
            samples: 1000
            sample-bytes: fixed 100KB
            memory: 10MB
            nodes: 2
            ranks-per-node: 2
            network.rate: 1MB
            network.latency: 10ms
            policies: redirect
            """,
            "test");
    PlanSettings settings =
        new PlanSettings("redirect", 8, 1 << 20, 1 << 16, Tail.SHORT).withExchange(Exchange.of(1));
    PlanInputs inputs =
        PlanInputs.of(scenario.dataset().layout(0), 0, new World(4, 2, 0), settings);
    return new Parcels(inputs, new Machines(scenario, new NodeSample(scenario)), scenario.cost());
  }

  private static PlanStep.Send send(int to, int position) {
    return new PlanStep.Send(0, 0, to, 0, position);
  }

  private static PlanStep.Receive receive(int from, int position) {
    return new PlanStep.Receive(0, from, 0, position);
  }

  @Test
  void a_parcel_has_come_when_its_last_byte_has() {
    Parcels parcels = parcels();
    parcels.add(1, 0, send(2, 0), 100_000);
    parcels.add(2, 0, send(2, 5), 300_000);
    parcels.add(2, 0, send(1, 3), 300_000);
    parcels.carry();
    assertThat(parcels.arrived(2, receive(0, 0))).isCloseTo(2.41, within(1e-9));
    assertThat(parcels.arrived(2, receive(0, 5))).isCloseTo(2.41, within(1e-9));
    assertThat(parcels.arrived(1, receive(0, 3))).isEqualTo(2); // of the same node
    assertThat(parcels.waitingBytes(2)).isEqualTo(400_000);
    parcels.done(3, 2, 0);
    assertThat(parcels.waitingBytes(2)).isZero();
    // Where the step was, there is room for the one that comes so many later; of the next epoch,
    // for all that is pushed at its start.
    int room = Exchange.room(Exchange.DEFAULT_WINDOW);
    assertThat(parcels.hasRoom(3, 2, room)).isEqualTo(3);
    assertThat(parcels.hasRoom(0, 2, room)).isCloseTo(3.01, within(1e-9));
    assertThat(parcels.hasRoom(3, 2, room + 1)).isZero();
    parcels.done(4, 2, 1);
    assertThat(parcels.hasRoom(3, 2, room)).isEqualTo(3);
    assertThat(parcels.hasRoom(3, 2, 0)).isEqualTo(4);
  }

  @Test
  void links_pass_what_is_ready_first_in_whatever_order_ranks_have_their_turn() {
    List<List<Double>> found = new ArrayList<>();
    for (int[] turns : new int[][] {{0, 1, 3}, {3, 1, 0}, {1, 3, 0}}) {
      Parcels parcels = parcels();
      for (int rank : turns) {
        // The second rank is the first that is ready, the others are at the same time.
        double ready = rank == 1 ? 1 : 1.2;
        parcels.add(ready, rank, send(2, rank), 400_000);
      }
      parcels.carry();
      found.add(
          List.of(
              parcels.arrived(2, receive(0, 0)),
              parcels.arrived(2, receive(1, 1)),
              parcels.arrived(2, receive(3, 3))));
    }
    assertThat(found.getFirst().get(0)).isCloseTo(1.81, within(1e-9));
    assertThat(found.getFirst().get(1)).isCloseTo(1.41, within(1e-9));
    assertThat(found.getFirst().get(2)).isEqualTo(1.2);
    assertThat(found).containsOnly(found.getFirst());
  }
}
