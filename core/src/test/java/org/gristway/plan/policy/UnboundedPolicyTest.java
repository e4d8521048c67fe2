package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.FrameReplay;
import org.gristway.plan.PlanCase;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.PlanStep.Release;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.World;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class UnboundedPolicyTest extends ReadPolicyContract {

  @Override
  ReadPolicy policy() {
    return new UnboundedPolicy();
  }

  @Test
  void what_is_asked_for_is_delivered() {
    forEveryCase(
        each ->
            assertThat(Pulled.deliveries(each.plan()))
                .allMatch(deliver -> deliver.request() == deliver.sample()));
  }

  @Test
  void a_node_reads_every_extent_once_before_it_delivers_anything() {
    forEveryCase(
        each -> {
          ReadPlan plan = each.plan();
          ExtentCuts cuts = each.inputs().cuts();
          for (int node = 0; node < each.inputs().world().nodes(); node++) {
            List<Load> loads = new ArrayList<>();
            for (List<PlanStep> lane : lanes(each, node, true)) {
              List<PlanStep> ahead =
                  lane.stream().takeWhile(step -> isFrameLoad(step, true)).toList();
              loads.addAll(Pulled.of(Load.class, ahead));
              assertThat(lane.subList(ahead.size(), lane.size()))
                  .noneMatch(step -> isFrameLoad(step, true));
            }
            loads.sort(Comparator.comparing(Load::frame));
            assertThat(loads).hasSize((int) cuts.count());
            for (int extent = 0; extent < cuts.count(); extent++) {
              assertThat(loads.get(extent).frame()).isEqualTo(extent);
              assertThat(loads.get(extent).extent()).isEqualTo(cuts.extent(extent));
            }
            assertThat(each.inputs().segment() == 0 && loads.stream().anyMatch(Load::again))
                .isFalse();
            assertThat(plan.frames()).isEqualTo(loads.size());
          }
        });
  }

  @Test
  void the_lanes_of_a_node_can_be_carried_out_with_its_frames() {
    forEveryCase(
        each -> {
          for (int node = 0; node < each.inputs().world().nodes(); node++) {
            FrameReplay replay =
                new FrameReplay(each.layout(), Long.MAX_VALUE, 0, each.plan().frames());
            for (List<PlanStep> lane : lanes(each, node, true)) {
              lane.stream().filter(step -> isFrameLoad(step, true)).forEach(replay::add);
            }
            for (List<PlanStep> lane : lanes(each, node, true)) {
              lane.stream().filter(step -> isFrameLoad(step, false)).forEach(replay::add);
            }
            assertThat(replay.violations()).isEmpty();
          }
        });
  }

  private static boolean isFrameLoad(PlanStep step, boolean expected) {
    return (step instanceof Load load && load.frame() != PlanStep.IN_BATCH) == expected;
  }

  @Test
  void what_is_in_memory_stays_there_and_is_not_read_again() {
    forEveryCase(
        each -> {
          for (int node = 0; node < each.inputs().world().nodes(); node++) {
            List<List<PlanStep>> cold = lanes(each, node, true);
            List<List<PlanStep>> warm = lanes(each, node, false);
            for (int lane = 0; lane < warm.size(); lane++) {
              assertThat(Pulled.loads(warm.get(lane))).isEmpty();
              assertThat(Pulled.of(Release.class, cold.get(lane))).isEmpty();
              assertThat(Pulled.deliveries(warm.get(lane)))
                  .isEqualTo(Pulled.deliveries(cold.get(lane)));
            }
          }
        });
  }

  @Test
  void it_says_how_much_memory_it_takes() {
    forEveryCase(
        each -> {
          PlanInputs inputs = each.inputs();
          long largest = 0;
          for (long extent = 0; extent < inputs.cuts().count(); extent++) {
            largest += ExtentCuts.coveringBytes(inputs.cuts().extent(extent));
          }
          assertThat(each.plan().residentBytes())
              .isGreaterThanOrEqualTo(largest)
              .isGreaterThanOrEqualTo(each.plan().frames() * each.settings().extentBytes());
        });
  }

  private static List<List<PlanStep>> lanes(PlanCase each, int node, boolean cold) {
    World world = each.inputs().world();
    ReadPlan plan = each.plan();
    List<List<PlanStep>> lanes = new ArrayList<>();
    for (int rank = world.firstRank(node); rank < world.firstRank(node + 1); rank++) {
      lanes.add(Pulled.all(plan.lane(rank, cold)));
    }
    return lanes;
  }
}
