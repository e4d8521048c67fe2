package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.gristway.plan.Caching;
import org.gristway.plan.Caching.Rates;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Drop;
import org.gristway.plan.PlanStep.Fetch;
import org.gristway.plan.PlanStep.Keep;
import org.gristway.plan.PlanStep.Source;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.CachingPolicyContract.Caches;
import org.gristway.testing.Seeds;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Where samples come from: of the places that have them, the fastest. */
@Tag("java")
class TierLaneTest {

  private static final long SEED = Seeds.of("TierLaneTest");
  private static final int SAMPLES = 2_000;
  private static final long BYTES = 4096;
  private static final int RANKS = 4;
  private static final int EPOCHS = 8;

  /**
   * A sample that was delivered.
   *
   * @param source null: the store
   */
  private record Delivered(
      long sample, @Nullable Source source, boolean onOwnDisk, boolean inOthersMemory) {

    boolean isFrom(boolean here, int tier) {
      return source != null && (source.peer() == Source.HERE) == here && source.tier() == tier;
    }
  }

  /** An eighth of the dataset fits the memory of a rank, and a quarter its disk. */
  private static PlanInputs inputs(Rates rates, int nodes) {
    Caching caching = new Caching(SAMPLES / 4 * BYTES, EPOCHS, rates);
    PlanSettings settings =
        new PlanSettings("clairvoyant", 25, SAMPLES / 6 * BYTES, BYTES, Tail.SHORT)
            .withCaching(caching);
    return PlanInputs.of(Layouts.fixed(SAMPLES, BYTES), SEED, new World(RANKS, nodes, 0), settings);
  }

  /** All that is delivered in a run, each sample of which has come from the fastest place. */
  private static List<Delivered> delivered(ReadPolicy policy, PlanInputs inputs) {
    Caches caches = new Caches(inputs);
    List<Delivered> delivered = new ArrayList<>();
    for (long epoch = 0; epoch < EPOCHS; epoch++) {
      ReadPlan plan = policy.plan(inputs, epoch);
      List<List<PlanStep>> lanes = new ArrayList<>();
      for (int rank = 0; rank < RANKS; rank++) {
        List<PlanStep> lane = Pulled.all(plan.lane(rank, epoch == 0));
        lanes.add(lane);
        delivered.addAll(delivered(inputs, caches, lane, rank));
      }
      for (int rank = 0; rank < RANKS; rank++) {
        carryOut(lanes.get(rank), rank, caches);
      }
    }
    return delivered;
  }

  private static void carryOut(List<PlanStep> lane, int rank, Caches caches) {
    for (PlanStep step : lane) {
      switch (step) {
        case Keep keep -> caches.keep(rank, keep);
        case Drop drop -> caches.drop(rank, drop);
        default -> {}
      }
    }
  }

  private static List<Delivered> delivered(
      PlanInputs inputs, Caches caches, List<PlanStep> lane, int rank) {
    Map<Long, Source> fetched = new HashMap<>();
    Pulled.of(Fetch.class, lane).forEach(fetch -> fetched.put(fetch.sample(), fetch.source()));
    int node = inputs.world().nodeOf(rank);
    Rates rates = inputs.settings().caching().rates();
    List<Delivered> delivered = new ArrayList<>();
    for (Deliver deliver : Pulled.deliveries(lane)) {
      long sample = deliver.sample();
      Source source = fetched.get(sample);
      long fastest = rates.store();
      boolean inOthersMemory = false;
      for (int each = 0; each < inputs.world().nodes(); each++) {
        for (int tier : new int[] {Caching.MEMORY, Caching.DISK}) {
          if (caches.has(each, sample, tier)) {
            fastest = Math.max(fastest, rates.of(tier, each == node));
            inOthersMemory |= each != node && tier == Caching.MEMORY;
          }
        }
      }
      long rate =
          source == null ? rates.store() : rates.of(source.tier(), source.peer() == Source.HERE);
      assertThat(rate).as("rank %d, sample %d from %s", rank, sample, source).isEqualTo(fastest);
      boolean onOwnDisk = caches.has(node, sample, Caching.DISK);
      delivered.add(new Delivered(sample, source, onOwnDisk, inOthersMemory));
    }
    return delivered;
  }

  @Test
  void every_sample_comes_from_the_fastest_place_that_has_it() {
    Random random = new Random(SEED);
    for (int i = 0; i < 40; i++) {
      Rates rates =
          new Rates(
              1 + random.nextInt(4),
              1 + random.nextInt(4),
              1 + random.nextInt(4),
              1 + random.nextInt(4));
      ReadPolicy policy =
          random.nextBoolean() ? new ClairvoyantPolicy() : new ClairvoyantNextUsePolicy();
      PlanInputs inputs = inputs(rates, 1 + random.nextInt(RANKS));
      assertThat(delivered(policy, inputs)).as("%s", rates).hasSize(SAMPLES * EPOCHS);
    }
  }

  /** Ranks need not be in the same epoch: one may not have come to what it keeps since the last. */
  @Test
  void of_other_nodes_the_one_is_asked_that_has_had_it_longest() {
    PlanInputs inputs = inputs(new Rates(1, 10, 100, 10), RANKS);
    ReadPolicy policy = new ClairvoyantPolicy();
    Caches caches = new Caches(inputs);
    long[][] asked = new long[RANKS][SAMPLES]; // the epoch in which a rank was asked last
    int choices = 0;
    for (long epoch = 0; epoch < EPOCHS; epoch++) {
      ReadPlan plan = policy.plan(inputs, epoch);
      List<List<PlanStep>> lanes = new ArrayList<>();
      for (int rank = 0; rank < RANKS; rank++) {
        lanes.add(Pulled.all(plan.lane(rank, epoch == 0)));
        for (Fetch fetch : Pulled.of(Fetch.class, lanes.getLast())) {
          int from = fetch.source().peer();
          int sample = (int) fetch.sample();
          for (int other = 0; other < RANKS && from != Source.HERE; other++) {
            boolean has =
                caches.has(other, sample, Caching.MEMORY)
                    || caches.has(other, sample, Caching.DISK);
            if (has && other != rank && other != from) {
              assertThat(asked[from][sample]).isLessThan(asked[other][sample]);
              choices++;
            }
          }
        }
      }
      for (int rank = 0; rank < RANKS; rank++) {
        carryOut(lanes.get(rank), rank, caches);
        for (Deliver deliver : Pulled.deliveries(lanes.get(rank))) {
          asked[rank][(int) deliver.sample()] = epoch;
        }
      }
    }
    assertThat(choices).isPositive();
  }

  @Test
  void nothing_comes_from_another_node_that_is_farther_than_the_store() {
    Rates rates = new Rates(100, 50, 1000, 500);
    List<Delivered> delivered = delivered(new ClairvoyantPolicy(), inputs(rates, 2));
    assertThat(delivered).anyMatch(Delivered::inOthersMemory);
    assertThat(delivered)
        .allMatch(each -> each.source() == null || each.source().peer() == Source.HERE)
        .anyMatch(each -> each.isFrom(true, Caching.MEMORY))
        .anyMatch(each -> each.isFrom(true, Caching.DISK));
  }

  @Test
  void the_memory_of_another_node_is_taken_where_it_is_faster_than_the_own_disk() {
    assertThat(hadByBoth(new Rates(10, 500, 1000, 100)))
        .isNotEmpty()
        .allMatch(each -> each.isFrom(false, Caching.MEMORY));
  }

  @Test
  void the_own_disk_is_taken_where_it_is_faster_than_the_network() {
    assertThat(hadByBoth(new Rates(10, 100, 1000, 500)))
        .isNotEmpty()
        .allMatch(each -> each.isFrom(true, Caching.DISK));
  }

  /** What was delivered that lay on the own disk and in the memory of another node. */
  private static List<Delivered> hadByBoth(Rates rates) {
    return delivered(new ClairvoyantPolicy(), inputs(rates, RANKS)).stream()
        .filter(each -> each.onOwnDisk() && each.inOthersMemory())
        .toList();
  }
}
