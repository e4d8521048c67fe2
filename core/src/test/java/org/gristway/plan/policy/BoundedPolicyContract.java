package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.util.List;
import org.gristway.Failure.Kind;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.FrameReplay;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.junit.jupiter.api.Test;

/** What every policy keeps that has a budget: all but {@code unbounded}. */
abstract class BoundedPolicyContract extends ReadPolicyContract {

  /** The fewest frames that a rank can do with. */
  abstract int fewestFrames();

  @Test
  void a_lane_can_be_carried_out_with_its_own_frames() {
    forEveryCase(
        each -> {
          ReadPlan plan = each.plan();
          List<List<PlanStep>> lanes = Pulled.byRank(plan);
          for (int rank = 0; rank < lanes.size(); rank++) {
            FrameReplay replay = FrameReplay.of(plan, rank).addAll(lanes.get(rank));
            assertThat(replay.violations()).isEmpty();
            assertThat(replay.held()).as("frames that are never released").isEmpty();
          }
        });
  }

  @Test
  void the_frames_of_a_node_fit_its_budget() {
    forEveryCase(
        each -> {
          ReadPlan plan = each.plan();
          long budget = each.settings().memory() * each.inputs().world().mostRanks();
          assertThat(plan.frames() * plan.frameBytes()).isLessThanOrEqualTo(budget);
          assertThat(plan.residentBytes()).isLessThanOrEqualTo(budget);
          assertThat(plan.frames() / each.inputs().world().mostRanks()).isPositive();
        });
  }

  @Test
  void no_load_into_a_frame_comes_once_none_is_left() {
    forEveryCase(
        each -> {
          for (int rank = 0; rank < each.ranks(); rank++) {
            PlanSteps lane = each.plan().lane(rank, true);
            boolean left = lane.loadsLeft();
            for (PlanStep step = lane.next(); step != null; step = lane.next()) {
              if (step instanceof PlanStep.Load load && load.frame() != PlanStep.IN_BATCH) {
                assertThat(left).as("%s may still come", load).isTrue();
              }
              left = lane.loadsLeft();
            }
          }
        });
  }

  @Test
  void too_little_memory_is_refused_with_what_would_do() {
    World world = new World(5, 2, 0);
    long enough = fewestFrames() * ExtentCuts.PAGE;
    PlanInputs tooSmall = PlanInputs.of(Layouts.fixed(10, 100), 1, world, settings(enough - 1));
    assertFails(
        Kind.WRONG_CALL,
        () -> policy().plan(tooSmall, 0),
        policy().name(),
        "give it " + enough + " or more for each rank");
    PlanInputs justEnough = PlanInputs.of(Layouts.fixed(10, 100), 1, world, settings(enough));
    assertThat(Pulled.deliveries(policy().plan(justEnough, 0))).hasSize(10);
  }

  private PlanSettings settings(long memory) {
    return new PlanSettings(policy().name(), 2, memory, ExtentCuts.PAGE, Tail.SHORT);
  }
}
