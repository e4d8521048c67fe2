package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.gristway.chunk.Extent;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("java")
class RedirectPositionPolicyTest extends BoundedPolicyContract {

  private static final int SAMPLE_BYTES = 4096;

  @Override
  ReadPolicy policy() {
    return new RedirectPositionPolicy();
  }

  @Override
  int fewestFrames() {
    return 1;
  }

  @Test
  void every_sample_is_read_once_alone() {
    forEveryCase(
        each -> {
          for (List<PlanStep> lane : Pulled.byRank(each.plan())) {
            List<Extent> delivered =
                Pulled.deliveries(lane).stream()
                    .filter(deliver -> !deliver.repeat())
                    .map(Deliver::sample)
                    .map(each.layout()::location)
                    .toList();
            assertThat(Pulled.loads(lane).stream().map(Load::extent).toList())
                .containsExactlyInAnyOrderElementsOf(delivered);
          }
        });
  }

  @Test
  void a_request_is_answered_from_the_slot_of_what_it_asks_for() {
    // Extents of 16 samples of a page each, in one lane: a sample's position is its number mod 16.
    PlanInputs inputs = inputs(40_960, 16, 0.2);
    List<Deliver> deliveries = Pulled.deliveries(policy().plan(inputs, 3));
    assertThat(deliveries).allMatch(each -> each.sample() % 16 == each.request() % 16);
    // Of five extents or six to a group, each is answered from no other group's.
    Map<Long, Set<Long>> answeredFrom = new HashMap<>(); // by the extent that is asked for
    deliveries.forEach(
        each ->
            answeredFrom
                .computeIfAbsent(each.request() / 16, _ -> new HashSet<>())
                .add(each.sample() / 16));
    assertThat(answeredFrom.values()).allMatch(extents -> extents.size() <= 6);
  }

  @Test
  void a_sample_is_loaded_some_way_ahead_of_its_delivery() {
    List<PlanStep> lane = Pulled.all(policy().plan(inputs(40_960, 64, 0.1), 0).lane(0, true));
    Map<Extent, Integer> loads = new HashMap<>(); // how many come up to each
    List<Load> all = Pulled.loads(lane);
    all.forEach(load -> loads.put(load.extent(), loads.size() + 1));
    SampleLayout layout = Layouts.fixed(40_960, SAMPLE_BYTES);
    int loaded = 0;
    for (PlanStep step : lane) {
      switch (step) {
        case Load _ -> loaded++;
        case Deliver deliver -> {
          Extent extent = layout.location(deliver.sample());
          assertThat(loaded)
              .isGreaterThanOrEqualTo(
                  Math.min(all.size(), loads.get(extent) + PositionLane.SPARE_FRAMES - 1));
        }
        default -> {}
      }
    }
  }

  /** Loads a chunk of the authors' rule, from a simulation of 40,960 files apart from this code. */
  @ParameterizedTest
  @CsvSource({
    "16, 0.5, 2.57",
    "16, 0.1, 4.02",
    "64, 0.5, 4.85",
    "64, 0.2, 7.68",
    "64, 0.1, 8.93",
    "256, 0.5, 9.46",
    "256, 0.1, 18.8"
  })
  void an_extent_is_opened_as_often_as_under_the_authors_rule(
      int samples, double memory, double expected) {
    PlanInputs inputs = inputs(40_960, samples, memory);
    PositionLane lane = (PositionLane) policy().plan(inputs, 0).lane(0, true);
    while (lane.next() != null) {
      // to the end
    }
    assertThat(lane.parts()).isEqualTo(40_960 / samples);
    assertThat((double) lane.openings() / lane.parts())
        .isCloseTo(expected, within(0.03 * expected));
  }

  @Test
  void most_requests_are_redirected_the_more_the_less_memory_there_is() {
    double half = redirected(0.5);
    double tenth = redirected(0.1);
    assertThat(half).isBetween(0.45, 0.6);
    assertThat(tenth).isBetween(0.85, 0.97);
  }

  private double redirected(double memory) {
    List<Deliver> deliveries = Pulled.deliveries(policy().plan(inputs(40_960, 64, memory), 0));
    long other = deliveries.stream().filter(each -> each.sample() != each.request()).count();
    return (double) other / deliveries.size();
  }

  @Test
  void with_memory_for_all_nothing_is_opened_twice_and_nothing_redirected() {
    PlanInputs inputs = inputs(4096, 64, 1);
    PositionLane lane = (PositionLane) policy().plan(inputs, 0).lane(0, true);
    List<Deliver> deliveries = Pulled.deliveries(Pulled.all(lane));
    assertThat(lane.openings()).isEqualTo(lane.parts());
    assertThat(deliveries).allMatch(each -> each.sample() == each.request());
  }

  private PlanInputs inputs(int samples, int perExtent, double memory) {
    PlanSettings settings =
        new PlanSettings(
            policy().name(),
            256,
            ((long) Math.ceil(samples * memory) + PositionLane.SPARE_FRAMES) * SAMPLE_BYTES,
            (long) perExtent * SAMPLE_BYTES,
            Tail.SHORT);
    return PlanInputs.of(Layouts.fixed(samples, SAMPLE_BYTES), 1, World.of(1), settings);
  }
}
