package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.gristway.dataset.Dataset;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.Caching;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Drop;
import org.gristway.plan.PlanStep.Fetch;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.PlanStep.Source;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What every policy keeps that decides for a stretch of epochs what each rank keeps. */
abstract class StretchPolicyContract extends CachingPolicyContract {

  static final int SAMPLES = 20_000;
  static final int RANKS = 4;

  /**
   * Ranks on nodes of their own, with samples of one size.
   *
   * @param kept the part of the dataset that fits the cache of each rank
   */
  static PlanInputs inputs(ReadPolicy policy, int ranks, int epochs, double kept) {
    long cached = Math.round(kept * SAMPLES);
    // A quarter of the memory is for frames, or as many as are of use.
    long memory = 4096 * Math.min(Math.ceilDiv(4 * cached, 3), cached + 1024);
    Caching caching = new Caching(0, epochs, Caching.Rates.USUAL);
    PlanSettings settings =
        new PlanSettings(policy.name(), 25, memory, 4096, Tail.SHORT).withCaching(caching);
    return PlanInputs.of(Layouts.fixed(SAMPLES, 4096), 1, new World(ranks, ranks, 0), settings);
  }

  /** Where what is asked for comes from in an epoch, or in several: parts of all of it. */
  record Served(double own, double others, double store) {

    static Served in(ReadPlan plan) {
      PlanInputs inputs = plan.inputs();
      long all = inputs.samples().count();
      long own = 0;
      long others = 0;
      long store = 0;
      for (int rank = 0; rank < inputs.world().ranks(); rank++) {
        List<PlanStep> lane = Pulled.all(plan.lane(rank, plan.epoch() == 0));
        for (Fetch fetch : Pulled.of(Fetch.class, lane)) {
          own += fetch.source().peer() == Source.HERE ? 1 : 0;
          others += fetch.source().peer() == Source.HERE ? 0 : 1;
        }
        store += Pulled.of(Load.class, lane).size();
      }
      return new Served((double) own / all, (double) others / all, (double) store / all);
    }

    static Served in(ReadPolicy policy, PlanInputs inputs, int epochs) {
      Served sum = new Served(0, 0, 0);
      for (long epoch = 0; epoch < epochs; epoch++) {
        Served each = in(policy.plan(inputs, epoch));
        sum = new Served(sum.own + each.own, sum.others + each.others, sum.store + each.store);
      }
      return new Served(sum.own / epochs, sum.others / epochs, sum.store / epochs);
    }
  }

  @Test
  void what_is_asked_for_is_delivered() {
    forEveryCase(
        each ->
            assertThat(Pulled.deliveries(each.plan()))
                .allMatch(deliver -> deliver.request() == deliver.sample()));
  }

  @Test
  void with_room_for_all_the_store_is_read_once() {
    int epochs = 10;
    ReadPolicy policy = policy();
    PlanInputs inputs = inputs(policy, RANKS, epochs, 1);
    for (long epoch = 0; epoch < epochs; epoch++) {
      Served served = Served.in(policy.plan(inputs, epoch));
      assertThat(served.store()).as("epoch %d", epoch).isEqualTo(epoch == 0 ? 1 : 0);
    }
    // A rank is asked for a sample in 2.5 of 10 epochs on average, and has it from the first on.
    double expected = 1 - (1 - Math.pow(0.75, epochs)) / 2.5;
    assertThat(Served.in(policy, inputs, epochs).own()).isCloseTo(expected, within(0.01));
  }

  @Test
  void a_stretch_begins_with_empty_caches() {
    ReadPolicy policy = policy();
    PlanInputs inputs = inputs(policy, RANKS, 3, 0.25);
    for (long epoch = 0; epoch < 9; epoch++) {
      ReadPlan plan = policy.plan(inputs, epoch);
      boolean begins = epoch % 3 == 0;
      List<PlanStep> lane = Pulled.all(plan.lane(1, epoch == 0));
      assertThat(Pulled.of(Fetch.class, lane).isEmpty()).as("epoch %d", epoch).isEqualTo(begins);
      assertThat(Pulled.of(Drop.class, lane).stream().filter(drop -> drop.sample() == Drop.ALL))
          .hasSize(begins && epoch > 0 ? 2 : 0);
    }
  }

  /** Tables are kept for the plans to come, also when what they were made for is closed. */
  @Test
  void plans_are_made_of_a_dataset_that_was_closed_and_opened_again(@TempDir Path folder) {
    Path path = Packs.pack(Trees.random(new Random(1), 100), folder.resolve("dataset"));
    ReadPolicy policy = policy();
    List<Long> kept = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      try (Dataset dataset = Dataset.open(path)) {
        PlanSettings settings =
            new PlanSettings(policy.name(), 5, 1 << 20, 16 << 10, Tail.SHORT)
                .withCaching(new Caching(0, 4, Caching.Rates.USUAL));
        SampleLayout layout = SampleLayout.of(dataset.snapshot());
        kept.add(policy.plan(PlanInputs.of(layout, 1, World.of(2), settings), 2).bytesAtStart());
      }
    }
    assertThat(kept.getFirst()).isPositive().isEqualTo(kept.getLast());
  }
}
