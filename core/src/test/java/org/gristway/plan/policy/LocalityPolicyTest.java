package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Fetch;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.PlanStep.Source;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("java")
class LocalityPolicyTest extends CachingPolicyContract {

  private static final int SAMPLES = 100_000;
  private static final int RANKS = 16;

  @Override
  ReadPolicy policy() {
    return new LocalityPolicy();
  }

  @Test
  void every_global_batch_has_the_samples_that_were_asked_for() {
    forEveryCase(
        each -> {
          Map<Long, Set<Long>> asked = new HashMap<>();
          Map<Long, Set<Long>> given = new HashMap<>();
          for (Deliver deliver : Pulled.deliveries(each.withEpoch(3).plan())) {
            if (!deliver.repeat()) {
              asked.computeIfAbsent(deliver.step(), _ -> new HashSet<>()).add(deliver.request());
              given.computeIfAbsent(deliver.step(), _ -> new HashSet<>()).add(deliver.sample());
            }
          }
          assertThat(given).isEqualTo(asked);
        });
  }

  /** The share that keeps batches equal, of sixteen ranks that each keep a sixteenth. */
  @ParameterizedTest
  @CsvSource({"32, 0.068", "128, 0.034", "256, 0.024"})
  void only_the_imbalance_moves(int batch, double published) {
    double expected = Math.sqrt((1 - 1.0 / RANKS) / (2 * Math.PI * batch));
    assertThat(expected).isCloseTo(published, within(0.0006));
    ReadPlan plan = policy().plan(inputs(batch, 1.5), 1);
    List<Fetch> fetches = new ArrayList<>();
    for (int rank = 0; rank < RANKS; rank++) {
      List<PlanStep> lane = Pulled.all(plan.lane(rank, false));
      assertThat(Pulled.of(Load.class, lane)).isEmpty();
      fetches.addAll(Pulled.of(Fetch.class, lane));
    }
    assertThat(fetches).hasSize(SAMPLES);
    long moved = fetches.stream().filter(each -> each.source().peer() != Source.HERE).count();
    assertThat((double) moved / SAMPLES).isCloseTo(expected, within(0.1 * expected));
  }

  @Test
  void what_nobody_keeps_is_read_by_all_alike() {
    ReadPlan plan = policy().plan(inputs(64, 0.5), 2);
    for (int rank = 0; rank < RANKS; rank++) {
      long loads = Pulled.of(Load.class, Pulled.all(plan.lane(rank, false))).size();
      assertThat((double) loads * RANKS / SAMPLES).isCloseTo(0.5, within(0.02));
    }
  }

  /**
   * @param kept the part of the dataset that fits the caches
   */
  private PlanInputs inputs(int batch, double kept) {
    long cached = (long) (kept * SAMPLES / RANKS);
    // A quarter of the memory is for frames, or as many as are of use.
    long all = cached * 4 / 3 <= 4096 ? cached * 4 / 3 : cached + 1024;
    PlanSettings settings = new PlanSettings(policy().name(), batch, all * 4096, 4096, Tail.SHORT);
    return PlanInputs.of(Layouts.fixed(SAMPLES, 4096), 1, new World(RANKS, RANKS, 0), settings);
  }
}
