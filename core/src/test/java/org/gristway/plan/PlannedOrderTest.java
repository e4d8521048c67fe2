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
        assertThat(order.reads()).as(each.name()).isEqualTo(loads.size());
        assertThat(order.bytes())
            .as(each.name())
            .isEqualTo(
                loads.stream().mapToLong(load -> ExtentCuts.coveringBytes(load.extent())).sum());
        if (!policy.name().equals("unbounded")) {
          assertThat(order.peakResidentBytes())
              .as(each.name())
              .isLessThanOrEqualTo(each.settings().memory() * each.ranks());
        }
      }
    }
  }

  /** Follows the steps one by one, as they come for a single rank. */
  private static long peak(ReadPlan plan, boolean cold) {
    long frames = 0;
    long stays = cold ? 0 : plan.bytesAtStart();
    long peak = stays;
    for (PlanStep step : Pulled.all(plan.lane(0, cold))) {
      switch (step) {
        case Load load when load.frame() != PlanStep.IN_BATCH && plan.staysResident() ->
            stays += Math.max(plan.frameBytes(), ExtentCuts.coveringBytes(load.extent()));
        case Load load when load.frame() != PlanStep.IN_BATCH -> frames++;
        case PlanStep.Fetch _ -> frames++;
        case PlanStep.Release _ -> frames--;
        case PlanStep.Keep keep when keep.tier() == Caching.MEMORY ->
            stays += plan.inputs().layout().length(keep.sample());
        case PlanStep.Drop drop when drop.tier() == Caching.MEMORY ->
            stays -= plan.inputs().layout().length(drop.sample());
        default -> {}
      }
      peak = Math.max(peak, frames * plan.frameBytes() + stays);
    }
    return peak;
  }

  @Test
  void memory_holds_frames_and_what_is_kept() {
    Caching caching = new Caching(20 << 10, 8, Caching.Rates.USUAL);
    for (ReadPolicy policy : Policies.all()) {
      PlanSettings settings =
          new PlanSettings(policy.name(), 10, 256 << 10, 16 << 10, Tail.SHORT).withCaching(caching);
      PlanInputs inputs = PlanInputs.of(Layouts.fixed(500, 1000), 1, World.of(1), settings);
      for (long epoch = 0; epoch < 3; epoch++) {
        ReadPlan plan = policy.plan(inputs, epoch);
        PlannedOrder order = new PlannedOrder(plan, epoch == 0);
        long ofSteps = 0;
        while (order.next() != null) {
          ofSteps = Math.max(ofSteps, order.stepResidentBytes());
        }
        assertThat(order.peakResidentBytes())
            .as("%s, epoch %d", policy.name(), epoch)
            .isEqualTo(peak(plan, epoch == 0));
        assertThat(ofSteps).isBetween(order.peakResidentBytes() - 1000, order.peakResidentBytes());
        if (policy.caches()) {
          assertThat(order.peakResidentBytes()).isGreaterThan(plan.frames() * plan.frameBytes());
        }
      }
    }
  }
}
