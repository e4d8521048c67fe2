package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.gristway.plan.Caching;
import org.gristway.plan.PlanCase;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Drop;
import org.gristway.plan.PlanStep.Fetch;
import org.gristway.plan.PlanStep.Keep;
import org.gristway.plan.PlanStep.Source;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.SampleSet;
import org.gristway.plan.World;
import org.junit.jupiter.api.Test;

/** What every policy keeps that caches samples. */
abstract class CachingPolicyContract extends BoundedPolicyContract {

  private static final int EPOCHS = 6;

  @Override
  int fewestFrames() {
    return 1;
  }

  /** What the ranks have kept: by rank, sample and tier. */
  static final class Caches {
    private final PlanInputs inputs;
    private final List<Map<Long, Integer>> kept = new ArrayList<>();

    Caches(PlanInputs inputs) {
      this.inputs = inputs;
      for (int rank = 0; rank < inputs.world().ranks(); rank++) {
        kept.add(new TreeMap<>());
      }
    }

    boolean has(int node, long sample, int tier) {
      World world = inputs.world();
      for (int rank = world.firstRank(node); rank < world.firstRank(node + 1); rank++) {
        if (Integer.valueOf(tier).equals(kept.get(rank).get(sample))) {
          return true;
        }
      }
      return false;
    }

    void keep(int rank, Keep keep) {
      assertThat(kept.get(rank).put(keep.sample(), keep.tier()))
          .as("%s, kept before", keep)
          .isNull();
    }

    void drop(int rank, Drop drop) {
      assertThat(drop.sample()).isEqualTo(Drop.ALL);
      kept.get(rank).values().removeIf(tier -> tier == drop.tier());
    }

    long bytes(int rank, int tier) {
      return kept.get(rank).entrySet().stream()
          .filter(entry -> entry.getValue() == tier)
          .mapToLong(entry -> inputs.layout().length(entry.getKey()))
          .sum();
    }

    long bytesInMemory() {
      long sum = 0;
      for (int rank = 0; rank < kept.size(); rank++) {
        sum += bytes(rank, Caching.MEMORY);
      }
      return sum;
    }
  }

  /** A case over whole epochs, with a disk and a number of epochs. */
  private static PlanCase whole(PlanCase each) {
    Random random = new Random(each.inputs().seed());
    PlanSettings old = each.settings();
    Caching caching =
        new Caching(
            random.nextBoolean() ? 0 : random.nextLong(1 + 2 * old.memory()),
            1 + random.nextInt(EPOCHS),
            new Caching.Rates(
                1 + random.nextInt(4),
                1 + random.nextInt(4),
                1 + random.nextInt(4),
                1 + random.nextInt(4)));
    PlanSettings settings =
        new PlanSettings(
            old.policy(), old.batchSize(), old.memory(), old.extentBytes(), old.tail(), caching);
    long samples = each.layout().sampleCount();
    return each.withInputs(each.inputs().with(SampleSet.all(samples), 0).with(settings));
  }

  @Test
  void what_is_fetched_is_there_and_what_is_kept_fits() {
    forEveryCase(
        random -> {
          PlanCase each = whole(random);
          Caches caches = new Caches(each.inputs());
          for (long epoch = 0; epoch < EPOCHS; epoch++) {
            ReadPlan plan = each.withEpoch(epoch).plan();
            List<List<PlanStep>> lanes = new ArrayList<>();
            for (int rank = 0; rank < each.ranks(); rank++) {
              lanes.add(Pulled.all(plan.lane(rank, epoch == 0)));
              int own = rank;
              Pulled.of(Drop.class, lanes.get(rank)).forEach(drop -> caches.drop(own, drop));
            }
            assertThat(plan.bytesAtStart()).as("epoch %d", epoch).isEqualTo(caches.bytesInMemory());
            for (int rank = 0; rank < each.ranks(); rank++) {
              for (Fetch fetch : Pulled.of(Fetch.class, lanes.get(rank))) {
                Source source = fetch.source();
                int node =
                    source.peer() == Source.HERE
                        ? each.inputs().world().nodeOf(rank)
                        : source.peer();
                assertThat(caches.has(node, fetch.sample(), source.tier()))
                    .as("epoch %d, rank %d: %s", epoch, rank, fetch)
                    .isTrue();
              }
            }
            for (int rank = 0; rank < each.ranks(); rank++) {
              int own = rank;
              Pulled.of(Keep.class, lanes.get(rank)).forEach(keep -> caches.keep(own, keep));
              assertThat(caches.bytes(rank, Caching.MEMORY) + plan.laneFrames() * plan.frameBytes())
                  .isLessThanOrEqualTo(each.settings().memory());
              assertThat(caches.bytes(rank, Caching.DISK))
                  .isLessThanOrEqualTo(each.settings().caching().diskBytes());
            }
          }
        });
  }

  @Test
  void a_cold_start_fetches_nothing_and_delivers_the_same() {
    forEveryCase(
        random -> {
          PlanCase each = whole(random);
          ReadPlan plan = each.withEpoch(1).plan();
          for (int rank = 0; rank < each.ranks(); rank++) {
            List<PlanStep> cold = Pulled.all(plan.lane(rank, true));
            List<PlanStep> warm = Pulled.all(plan.lane(rank, false));
            assertThat(Pulled.of(Fetch.class, cold)).isEmpty();
            assertThat(Pulled.deliveries(cold).stream().map(Pulled.Place::of))
                .containsExactlyElementsOf(
                    Pulled.deliveries(warm).stream().map(Pulled.Place::of).toList());
          }
        });
  }
}
