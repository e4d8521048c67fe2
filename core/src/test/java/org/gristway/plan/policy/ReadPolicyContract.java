package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanCase;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Tail;
import org.gristway.plan.TestLayout;
import org.gristway.plan.World;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What every policy keeps, whatever it is given. */
@Tag("java")
abstract class ReadPolicyContract {

  private static final long SEED = Seeds.of("ReadPolicyContract");

  abstract ReadPolicy policy();

  /** Settings as the test wants them, from any others. */
  PlanSettings adapted(PlanSettings settings) {
    return settings;
  }

  /** Numbers of nodes that the ranks may be on without changing anything. */
  int[] alikeOn(PlanCase each) {
    return new int[] {1, each.ranks()};
  }

  /** Runs a check on random cases; where it fails, the failure names the case. */
  final void forEveryCase(Consumer<PlanCase> check) {
    for (int i = 0; i < Thorough.count(200, 5000); i++) {
      PlanCase random = PlanCase.random(policy(), SEED + i);
      PlanCase each = random.withSettings(adapted(random.settings()));
      try {
        check.accept(each);
      } catch (AssertionError | RuntimeException e) {
        throw new AssertionError(each.name() + ": " + e.getMessage(), e);
      }
    }
  }

  private static long expectedSteps(PlanCase each) {
    long count = each.inputs().samples().count();
    long global = each.globalBatch();
    return each.settings().tail() == Tail.DROP ? count / global : Math.ceilDiv(count, global);
  }

  @Test
  void every_sample_of_the_set_is_delivered_once() {
    forEveryCase(
        each -> {
          long[] delivered =
              Pulled.deliveries(each.plan()).stream()
                  .filter(deliver -> !deliver.repeat())
                  .mapToLong(Deliver::sample)
                  .sorted()
                  .toArray();
          assertDistinctMembers(each, delivered);
          long count = each.inputs().samples().count();
          long dropped = each.settings().tail() == Tail.DROP ? count % each.globalBatch() : 0;
          assertThat(delivered).hasSize((int) (count - dropped));
        });
  }

  @Test
  void requests_are_distinct_samples_of_the_set() {
    forEveryCase(
        each ->
            assertDistinctMembers(
                each,
                Pulled.deliveries(each.plan()).stream()
                    .filter(deliver -> !deliver.repeat())
                    .mapToLong(Deliver::request)
                    .sorted()
                    .toArray()));
  }

  private static void assertDistinctMembers(PlanCase each, long[] sorted) {
    assertThat(Arrays.stream(sorted).distinct().count()).as("distinct").isEqualTo(sorted.length);
    assertThat(Arrays.stream(sorted)).allMatch(each.inputs().samples()::contains);
  }

  @Test
  void repeats_are_only_where_the_tail_allows_them() {
    forEveryCase(
        each -> {
          List<Deliver> repeats =
              Pulled.deliveries(each.plan()).stream().filter(Deliver::repeat).toList();
          long lastStep = expectedSteps(each) - 1;
          long due = each.inputs().samples().count() - lastStep * each.globalBatch();
          long expected =
              lastStep < 0
                  ? 0
                  : switch (each.settings().tail()) {
                    case SHORT -> Math.max(0, each.ranks() - due);
                    case PAD -> each.globalBatch() - due;
                    case DROP -> 0;
                  };
          assertThat(repeats).hasSize((int) expected);
          assertThat(repeats)
              .allMatch(repeat -> repeat.step() == lastStep)
              .allMatch(repeat -> each.inputs().samples().contains(repeat.sample()))
              .allMatch(repeat -> repeat.request() == repeat.sample());
          if (each.settings().tail() == Tail.SHORT) {
            assertThat(repeats).allMatch(repeat -> repeat.position() == 0);
          }
        });
  }

  @Test
  void a_batch_is_filled_up_with_its_own_samples_each_in_turn() {
    forEveryCase(
        each -> {
          for (List<PlanStep> lane : Pulled.byRank(each.plan())) {
            List<Deliver> last =
                Pulled.deliveries(lane).stream()
                    .filter(deliver -> deliver.step() == expectedSteps(each) - 1)
                    .toList();
            int due = (int) last.stream().filter(deliver -> !deliver.repeat()).count();
            for (int i = due; i < last.size() && i > 0; i++) {
              assertThat(last.get(i).repeat()).isTrue();
              assertThat(last.get(i).sample()).isEqualTo(last.get(i % Math.max(1, due)).sample());
            }
          }
        });
  }

  @Test
  void every_rank_has_the_same_number_of_batches() {
    forEveryCase(
        each -> {
          ReadPlan plan = each.plan();
          assertThat(plan.steps()).isEqualTo(expectedSteps(each));
          for (List<PlanStep> lane : Pulled.byRank(plan)) {
            assertThat(batchSizes(lane)).hasSize((int) plan.steps());
          }
        });
  }

  @Test
  void all_batches_are_full_except_the_last_which_is_dealt_evenly() {
    forEveryCase(
        each -> {
          List<Integer> lastSizes = new ArrayList<>();
          for (List<PlanStep> lane : Pulled.byRank(each.plan())) {
            List<Integer> sizes = batchSizes(lane);
            if (!sizes.isEmpty()) {
              lastSizes.add(sizes.removeLast());
            }
            assertThat(sizes).allMatch(size -> size == each.settings().batchSize());
          }
          if (each.settings().tail() == Tail.SHORT && !lastSizes.isEmpty()) {
            int largest = lastSizes.getFirst();
            assertThat(largest).isLessThanOrEqualTo(each.settings().batchSize());
            assertThat(lastSizes).allMatch(size -> size == largest || size == largest - 1);
          } else {
            assertThat(lastSizes).allMatch(size -> size == each.settings().batchSize());
          }
        });
  }

  /** The sizes of a lane's batches, whose places must come one after the other. */
  private static List<Integer> batchSizes(List<PlanStep> lane) {
    List<Integer> sizes = new ArrayList<>();
    for (Deliver deliver : Pulled.deliveries(lane)) {
      if (deliver.position() == 0) {
        sizes.add(0);
      }
      if (deliver.step() != sizes.size() - 1 || deliver.position() != sizes.getLast()) {
        throw new AssertionError(deliver + " comes after " + sizes);
      }
      sizes.set(sizes.size() - 1, deliver.position() + 1);
    }
    return sizes;
  }

  @Test
  void a_lane_gives_only_its_ranks_batches_and_ends_with_the_epoch() {
    forEveryCase(
        each -> {
          for (int rank = 0; rank < each.ranks(); rank++) {
            PlanSteps lane = each.plan().lane(rank, true);
            List<PlanStep> steps = Pulled.all(lane);
            int own = rank;
            assertThat(Pulled.deliveries(steps)).allMatch(deliver -> deliver.rank() == own);
            assertThat(Pulled.of(PlanStep.EpochEnd.class, steps)).hasSize(1);
            assertThat(steps.getLast()).isEqualTo(new PlanStep.EpochEnd(each.epoch()));
            assertThat(lane.next()).isNull();
            assertThat(lane.next()).isNull();
            assertThat(lane.loadsLeft()).isFalse();
          }
        });
  }

  @Test
  void the_same_inputs_give_the_same_steps_however_they_are_pulled() {
    forEveryCase(
        each -> {
          List<List<PlanStep>> first = Pulled.byRank(each.plan());
          assertThat(first).isEqualTo(interleaved(each.plan()));
        });
  }

  /** Pulls all lanes of one plan by turns, the last rank first. */
  private static List<List<PlanStep>> interleaved(ReadPlan plan) {
    List<PlanSteps> lanes = new ArrayList<>();
    List<List<PlanStep>> pulled = new ArrayList<>();
    for (int rank = 0; rank < plan.inputs().world().ranks(); rank++) {
      lanes.add(plan.lane(rank, true));
      pulled.add(new ArrayList<>());
    }
    for (int ended = 0; ended < lanes.size(); ) {
      ended = 0;
      for (int rank = lanes.size() - 1; rank >= 0; rank--) {
        for (int i = 0; i <= rank; i++) {
          PlanStep step = lanes.get(rank).next();
          if (step != null) {
            pulled.get(rank).add(step);
          } else if (i == 0) {
            ended++;
          }
        }
      }
    }
    return pulled;
  }

  @Test
  void another_seed_epoch_or_segment_gives_another_order() {
    forEveryCase(
        each -> {
          // With fewer samples a rank, two orders may well be the same by chance.
          if (each.inputs().samples().count() >= 20L * each.ranks() && each.plan().steps() > 0) {
            List<Long> order = order(each);
            PlanInputs later =
                each.inputs().with(each.inputs().samples(), each.inputs().segment() + 1);
            assertThat(order.equals(order(each.withSeed(each.inputs().seed() + 1)))).isFalse();
            assertThat(order.equals(order(each.withEpoch(each.epoch() + 1)))).isFalse();
            assertThat(order.equals(order(each.withInputs(later)))).isFalse();
          }
        });
  }

  private static List<Long> order(PlanCase each) {
    return Pulled.deliveries(each.plan()).stream().map(Deliver::sample).toList();
  }

  @Test
  void the_order_does_not_depend_on_how_ranks_are_grouped_into_nodes() {
    forEveryCase(
        each -> {
          List<Pulled.Place> places = Pulled.places(each.plan());
          for (int nodes : alikeOn(each)) {
            assertThat(places).isEqualTo(Pulled.places(each.withNodes(nodes).plan()));
          }
        });
  }

  @Test
  void no_sample_is_dropped_in_every_epoch() {
    for (int extents : new int[] {1, 10}) {
      TestLayout layout = Layouts.fixed(40 * extents, 1000);
      PlanSettings settings =
          adapted(new PlanSettings(policy().name(), 16, 1 << 20, 40 << 10, Tail.DROP));
      PlanInputs inputs = PlanInputs.of(layout, 1, World.of(2), settings);
      Set<Long> delivered = new HashSet<>();
      for (long epoch = 0; epoch < 100; epoch++) {
        Pulled.deliveries(policy().plan(inputs, epoch))
            .forEach(each -> delivered.add(each.sample()));
      }
      assertThat(delivered).as("of %d extents", extents).hasSize(40 * extents);
    }
  }

  @Test
  void nothing_is_delivered_of_an_empty_dataset() {
    for (Tail tail : Tail.values()) {
      PlanSettings settings = adapted(new PlanSettings(policy().name(), 8, 1 << 20, 4096, tail));
      PlanInputs inputs = PlanInputs.of(Layouts.fixed(0, 1), 1, World.of(3), settings);
      for (List<PlanStep> lane : Pulled.byRank(policy().plan(inputs, 2))) {
        assertThat(lane).containsExactly(new PlanStep.EpochEnd(2));
      }
    }
  }
}
