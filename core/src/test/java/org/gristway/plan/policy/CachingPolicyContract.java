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
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Drop;
import org.gristway.plan.PlanStep.Fetch;
import org.gristway.plan.PlanStep.Keep;
import org.gristway.plan.PlanStep.Source;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
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

  /** What the ranks keep: by rank, sample and tier. */
  static final class Caches {
    private final PlanInputs inputs;
    private final List<Map<Long, Integer>> kept = new ArrayList<>();
    private final long[][] bytes; // by rank and tier
    private final long[][] peak; // the most of that

    Caches(PlanInputs inputs) {
      this.inputs = inputs;
      this.bytes = new long[inputs.world().ranks()][2];
      this.peak = new long[inputs.world().ranks()][2];
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
      bytes[rank][keep.tier()] += inputs.layout().length(keep.sample());
      peak[rank][keep.tier()] = Math.max(peak[rank][keep.tier()], bytes[rank][keep.tier()]);
    }

    void drop(int rank, Drop drop) {
      if (drop.sample() == Drop.ALL) {
        kept.get(rank).values().removeIf(tier -> tier == drop.tier());
        bytes[rank][drop.tier()] = 0;
      } else {
        assertThat(kept.get(rank).remove(drop.sample(), drop.tier())).as("%s", drop).isTrue();
        bytes[rank][drop.tier()] -= inputs.layout().length(drop.sample());
      }
    }

    long bytes(int rank, int tier) {
      return bytes[rank][tier];
    }

    long peak(int rank, int tier) {
      return peak[rank][tier];
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
    PlanSettings settings = old.withCaching(caching);
    long samples = each.layout().sampleCount();
    return each.withInputs(each.inputs().with(SampleSet.all(samples), 0).with(settings));
  }

  @Test
  void what_is_fetched_is_there_and_what_is_kept_fits_at_every_step() {
    forEveryCase(
        random -> {
          PlanCase each = whole(random);
          replayed(each.policy(), each.inputs(), EPOCHS);
        });
  }

  /** What is kept after some epochs, each step of which was looked at. */
  static Caches replayed(ReadPolicy policy, PlanInputs inputs, int epochs) {
    Caches caches = new Caches(inputs);
    for (long epoch = 0; epoch < epochs; epoch++) {
      ReadPlan plan = policy.plan(inputs, epoch);
      List<List<PlanStep>> lanes = new ArrayList<>();
      for (int rank = 0; rank < inputs.world().ranks(); rank++) {
        lanes.add(Pulled.all(plan.lane(rank, epoch == 0)));
        dropBeforeAll(lanes.get(rank), rank, caches);
      }
      assertThat(plan.bytesAtStart()).as("epoch %d", epoch).isEqualTo(caches.bytesInMemory());
      for (int rank = 0; rank < lanes.size(); rank++) {
        assertFetchesAreThere(lanes.get(rank), rank, caches);
      }
      for (int rank = 0; rank < lanes.size(); rank++) {
        replay(plan, lanes.get(rank), rank, caches);
      }
    }
    return caches;
  }

  private static void dropBeforeAll(List<PlanStep> lane, int rank, Caches caches) {
    while (lane.getFirst() instanceof Drop drop) {
      caches.drop(rank, drop);
      lane.removeFirst();
    }
  }

  /** There since an epoch before: in this one, another rank may be anywhere. */
  private static void assertFetchesAreThere(List<PlanStep> lane, int rank, Caches caches) {
    for (Fetch fetch : Pulled.of(Fetch.class, lane)) {
      Source source = fetch.source();
      int node = source.peer() == Source.HERE ? caches.inputs.world().nodeOf(rank) : source.peer();
      assertThat(caches.has(node, fetch.sample(), source.tier()))
          .as("rank %d: %s", rank, fetch)
          .isTrue();
    }
  }

  /**
   * Carries the keeps and drops of a lane out, none of which another rank may get in the way of.
   */
  private static void replay(ReadPlan plan, List<PlanStep> lane, int rank, Caches caches) {
    long forSamples = plan.inputs().settings().memory() - plan.laneFrames() * plan.frameBytes();
    long onDisk = plan.inputs().settings().caching().diskBytes();
    long delivered = -1;
    for (PlanStep step : lane) {
      switch (step) {
        case Deliver deliver -> delivered = deliver.sample();
        case Keep keep -> caches.keep(rank, keep);
        case Drop drop -> {
          // Nobody else gets this sample in this epoch, so nobody else fetches it.
          assertThat(drop.sample()).isEqualTo(delivered);
          caches.drop(rank, drop);
        }
        default -> {}
      }
      assertThat(caches.bytes(rank, Caching.MEMORY)).as("%s", step).isBetween(0L, forSamples);
      assertThat(caches.bytes(rank, Caching.DISK)).as("%s", step).isBetween(0L, onDisk);
    }
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
