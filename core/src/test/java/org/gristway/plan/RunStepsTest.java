package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.gristway.chunk.Extent;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.EpochEnd;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.policy.Policies;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class RunStepsTest {

  private static final int EPOCHS = 3;

  /** A step of a run, and the epoch that it belongs to. */
  record InEpoch(long epoch, PlanStep step) {}

  static List<InEpoch> all(RunSteps lane) {
    List<InEpoch> steps = new ArrayList<>();
    for (PlanStep step = lane.next(); step != null; step = lane.next()) {
      steps.add(new InEpoch(lane.epoch(), step));
    }
    return steps;
  }

  static List<PlanStep> of(List<InEpoch> steps, long epoch) {
    return steps.stream().filter(each -> each.epoch() == epoch).map(InEpoch::step).toList();
  }

  private static void forEveryCase(String test, Consumer<PlanCase> check) {
    long seed = Seeds.of(test);
    for (int i = 0; i < Thorough.count(100, 2000); i++) {
      for (ReadPolicy policy : Policies.all()) {
        PlanCase each = PlanCase.random(policy, seed + i);
        try {
          check.accept(each);
        } catch (AssertionError | RuntimeException e) {
          throw new AssertionError(each.name() + ": " + e.getMessage(), e);
        }
      }
    }
  }

  private static Run begin(PlanCase each) {
    return Run.begin(each.policy(), each.inputs(), EPOCHS);
  }

  @Test
  void every_epoch_delivers_and_reads_what_its_plan_says() {
    forEveryCase(
        "every_epoch_delivers_and_reads_what_its_plan_says",
        each -> {
          for (int rank = 0; rank < each.ranks(); rank++) {
            List<InEpoch> steps = all(begin(each).lane(rank));
            for (long epoch = 0; epoch < EPOCHS; epoch++) {
              List<PlanStep> planned =
                  Pulled.all(each.withEpoch(epoch).plan().lane(rank, epoch == 0));
              List<PlanStep> found = of(steps, epoch);
              assertThat(places(found)).isEqualTo(places(planned));
              assertThat(extents(found)).isEqualTo(extents(planned));
            }
          }
        });
  }

  private static List<Pulled.Place> places(List<PlanStep> steps) {
    return Pulled.deliveries(steps).stream().map(Pulled.Place::of).toList();
  }

  private static List<Extent> extents(List<PlanStep> steps) {
    return Pulled.of(Load.class, steps).stream().map(Load::extent).toList();
  }

  @Test
  void a_run_can_be_carried_out_with_the_frames_of_one_plan() {
    forEveryCase(
        "a_run_can_be_carried_out_with_the_frames_of_one_plan",
        each -> {
          if (each.policy().name().equals("unbounded")) {
            return; // its lanes share their frames
          }
          for (int rank = 0; rank < each.ranks(); rank++) {
            List<InEpoch> steps = all(begin(each).lane(rank));
            FrameReplay replay =
                FrameReplay.of(each.plan(), rank)
                    .addAll(steps.stream().map(InEpoch::step).toList());
            assertThat(replay.violations()).isEmpty();
            assertThat(replay.held()).isEmpty();
          }
        });
  }

  @Test
  void epochs_end_in_their_order_and_the_run_with_the_last() {
    forEveryCase(
        "epochs_end_in_their_order_and_the_run_with_the_last",
        each -> {
          RunSteps lane = begin(each).lane(0);
          List<InEpoch> steps = all(lane);
          assertThat(Pulled.of(EpochEnd.class, steps.stream().map(InEpoch::step).toList()))
              .containsExactly(new EpochEnd(0), new EpochEnd(1), new EpochEnd(2));
          assertThat(steps.getLast().step()).isEqualTo(new EpochEnd(2));
          assertThat(lane.next()).isNull();
          assertThat(lane.next()).isNull();
          List<Long> epochs =
              steps.stream()
                  .filter(step -> step.step() instanceof Deliver)
                  .map(InEpoch::epoch)
                  .toList();
          assertThat(epochs).isSorted();
        });
  }

  @Test
  void every_frame_that_is_free_takes_a_load_of_the_next_epoch_before_this_one_ends() {
    int frames = 12;
    PlanSettings settings =
        new PlanSettings("redirect", 16, frames * (64L << 10), 64 << 10, Tail.SHORT);
    PlanInputs inputs = PlanInputs.of(Layouts.fixed(2000, 5000), 1, World.of(2), settings);
    for (String policy : List.of("redirect", "chunk-shuffle", "sample-order")) {
      for (int rank = 0; rank < 2; rank++) {
        List<InEpoch> steps = all(Run.begin(Policies.named(policy), inputs, EPOCHS).lane(rank));
        for (long epoch = 0; epoch < EPOCHS - 1; epoch++) {
          long next = epoch + 1;
          EpochEnd end = new EpochEnd(epoch);
          List<InEpoch> ahead =
              steps.stream()
                  .takeWhile(step -> !step.step().equals(end))
                  .filter(step -> step.epoch() == next)
                  .toList();
          assertThat(ahead).as("%s, epoch %d", policy, epoch).hasSize(frames);
          assertThat(ahead).allMatch(step -> step.step() instanceof Load);
        }
      }
    }
  }

  @Test
  void with_memory_for_two_epochs_the_next_is_loaded_while_this_one_is_delivered() {
    PlanSettings settings = new PlanSettings("redirect", 16, 16 << 20, 64 << 10, Tail.SHORT);
    PlanInputs inputs = PlanInputs.of(Layouts.fixed(600, 5000), 1, World.of(2), settings);
    for (String policy : List.of("redirect", "chunk-shuffle")) {
      for (int rank = 0; rank < 2; rank++) {
        List<InEpoch> steps = all(Run.begin(Policies.named(policy), inputs, EPOCHS).lane(rank));
        for (long epoch = 0; epoch < EPOCHS - 1; epoch++) {
          long next = epoch + 1;
          int last = lastLoad(steps, epoch);
          int first = firstDelivery(steps, epoch);
          assertThat(lastLoad(steps, next)).as(policy).isLessThan(lastDelivery(steps, epoch));
          assertThat(lastLoad(steps, next)).as(policy).isLessThan(Math.max(last, first) + 100);
        }
      }
    }
  }

  private static int lastLoad(List<InEpoch> steps, long epoch) {
    return last(steps, step -> step.epoch() == epoch && step.step() instanceof Load);
  }

  private static int lastDelivery(List<InEpoch> steps, long epoch) {
    return last(steps, step -> step.epoch() == epoch && step.step() instanceof Deliver);
  }

  private static int firstDelivery(List<InEpoch> steps, long epoch) {
    int at = 0;
    while (steps.get(at).epoch() != epoch || !(steps.get(at).step() instanceof Deliver)) {
      at++;
    }
    return at;
  }

  private static int last(List<InEpoch> steps, Predicate<InEpoch> which) {
    int at = steps.size() - 1;
    while (!which.test(steps.get(at))) {
      at--;
    }
    return at;
  }
}
