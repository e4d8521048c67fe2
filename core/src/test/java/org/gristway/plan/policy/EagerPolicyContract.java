package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.chunk.Extent;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.junit.jupiter.api.Test;

/** What every policy keeps whose frames take any extent: a free one is never left empty. */
abstract class EagerPolicyContract extends BoundedPolicyContract {

  @Test
  void a_load_stands_at_the_first_place_where_a_frame_is_free() {
    forEveryCase(
        each -> {
          ReadPlan plan = each.plan();
          for (List<PlanStep> lane : Pulled.byRank(plan)) {
            int free = plan.frames() / each.inputs().world().mostRanks();
            int left = Pulled.loads(lane).size();
            if (Pulled.loads(lane).stream().anyMatch(load -> load.frame() == PlanStep.IN_BATCH)) {
              continue; // a large sample waits in a place that a frame could have
            }
            for (PlanStep step : lane) {
              switch (step) {
                case PlanStep.Load load when load.frame() != PlanStep.IN_BATCH -> {
                  free--;
                  left--;
                }
                case PlanStep.Release _ -> free++;
                case PlanStep.Deliver _, PlanStep.Send _ ->
                    assertThat(Math.min(free, left)).as("%s", step).isZero();
                default -> {}
              }
            }
          }
        });
  }

  @Test
  void a_plan_is_computed_only_as_far_as_it_is_pulled() {
    AtomicLong asked = new AtomicLong();
    SampleLayout layout = counting(Layouts.fixed(1_000_000, 4000), asked);
    PlanSettings settings =
        adapted(new PlanSettings(policy().name(), 256, 100 * (64 << 10), 64 << 10, Tail.SHORT));
    PlanInputs inputs = PlanInputs.of(layout, 1, World.of(2), settings);
    asked.set(0);
    ReadPlan plan = policy().plan(inputs, 0);
    for (int rank = 0; rank < 2; rank++) {
      PlanSteps lane = plan.lane(rank, true);
      List<PlanStep> pulled = new ArrayList<>();
      for (int i = 0; i < 110; i++) {
        pulled.add(lane.next());
      }
      assertThat(pulled.subList(0, 100)).allMatch(step -> step instanceof PlanStep.Load);
      assertThat(pulled.get(100))
          .isInstanceOfAny(PlanStep.Deliver.class, PlanStep.Send.class, PlanStep.Receive.class);
    }
    assertThat(asked).hasValueLessThan(1000);
  }

  /** A layout that counts how often it is asked where a sample is. */
  private static SampleLayout counting(SampleLayout layout, AtomicLong asked) {
    return new SampleLayout() {
      @Override
      public String id() {
        return layout.id();
      }

      @Override
      public long sampleCount() {
        return layout.sampleCount();
      }

      @Override
      public int chunkCount() {
        return layout.chunkCount();
      }

      @Override
      public long firstSample(int chunk) {
        return layout.firstSample(chunk);
      }

      @Override
      public Extent location(long sample) {
        asked.incrementAndGet();
        return layout.location(sample);
      }

      @Override
      public long length(long sample) {
        asked.incrementAndGet();
        return layout.length(sample);
      }
    };
  }
}
