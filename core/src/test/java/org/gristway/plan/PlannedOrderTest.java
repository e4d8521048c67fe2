package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.policy.Policies;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class PlannedOrderTest {

  @Test
  void deliveries_come_by_step_rank_and_position_and_reads_are_counted() {
    long seed = Seeds.of("deliveries_come_by_step_rank_and_position");
    for (int i = 0; i < Thorough.count(100, 2000); i++) {
      for (ReadPolicy policy : Policies.all()) {
        PlanCase each = PlanCase.random(policy, seed + i);
        PlannedOrder order = new PlannedOrder(each.plan());
        List<Deliver> found = new ArrayList<>();
        for (Deliver[][] step = order.next(); step != null; step = order.next()) {
          for (Deliver[] batch : step) {
            found.addAll(List.of(batch));
          }
        }
        List<Deliver> expected =
            Pulled.deliveries(each.plan()).stream()
                .sorted(
                    Comparator.comparingLong(Deliver::step)
                        .thenComparing(Deliver::rank)
                        .thenComparing(Deliver::position))
                .toList();
        assertThat(found.equals(expected)).as(each.name()).isTrue();
        assertThat(order.next()).isNull();
        List<Load> loads =
            Pulled.byRank(each.plan()).stream()
                .flatMap(lane -> Pulled.of(Load.class, lane).stream())
                .toList();
        if (!expected.isEmpty()) {
          assertThat(order.reads()).as(each.name()).isEqualTo(loads.size());
          assertThat(order.bytes())
              .as(each.name())
              .isEqualTo(
                  loads.stream().mapToLong(load -> ExtentCuts.coveringBytes(load.extent())).sum());
        }
        if (!policy.name().equals("unbounded")) {
          assertThat(order.peakResidentBytes())
              .as(each.name())
              .isLessThanOrEqualTo(each.settings().memory() * each.ranks());
        }
      }
    }
  }
}
