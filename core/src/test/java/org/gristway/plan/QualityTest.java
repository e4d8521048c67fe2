package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.policy.Policies;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class QualityTest {

  @Test
  void a_report_is_what_counting_pairs_gives() {
    Random random = new Random(Seeds.of("a_report_is_what_counting_pairs_gives"));
    for (int i = 0; i < Thorough.count(100, 3000); i++) {
      TestLayout layout = Layouts.random(random);
      ExtentCuts cuts = ExtentCuts.cut(layout, 4096L * (1 + random.nextInt(8)));
      List<long[][]> steps = steps(random, (int) layout.sampleCount());
      Quality quality = new Quality(cuts);
      steps.forEach(quality::add);
      Quality.Report report = quality.report();
      String name = layout.id() + " " + report;

      List<long[]> global = steps.stream().map(QualityTest::flat).toList();
      List<long[]> own = steps.stream().flatMap(Arrays::stream).toList();
      double chance = mates(cuts, List.of(LongStream.range(0, layout.sampleCount()).toArray()));
      double mean = mates(cuts, global);
      assertThat(report.mateRatio()).as(name).isCloseTo(ratio(mean, chance, 1), within(1e-9));
      assertThat(report.rankMateRatio())
          .as(name)
          .isCloseTo(ratio(mates(cuts, own), chance, 1), within(1e-9));
      assertThat(report.worstBatch())
          .as(name)
          .isCloseTo(ratio(worst(cuts, global), mean, 1), within(1e-9));
      double distinct =
          global.stream()
              .mapToLong(batch -> Arrays.stream(batch).map(cuts::extentOf).distinct().count())
              .average()
              .orElse(0);
      assertThat(report.distinctExtents()).as(name).isCloseTo(distinct, within(1e-9));
      assertThat(report.spread()).as(name).isCloseTo(spread(cuts, global), within(1e-6));
    }
  }

  /** The samples in a random order, in full batches for a few ranks and a short step at the end. */
  private static List<long[][]> steps(Random random, int samples) {
    int ranks = 1 + random.nextInt(3);
    int batch = 2 + random.nextInt(20);
    Permutation order = new Permutation(samples, random.nextLong());
    List<long[][]> steps = new ArrayList<>();
    for (int first = 0; first < samples; first += ranks * batch) {
      long[][] step = new long[ranks][];
      for (int rank = 0; rank < ranks; rank++) {
        int from = Math.min(samples, first + rank * batch);
        step[rank] =
            LongStream.range(from, Math.min(samples, from + batch)).map(order::at).toArray();
      }
      steps.add(step);
    }
    return steps;
  }

  private static long[] flat(long[][] step) {
    return Arrays.stream(step).flatMapToLong(Arrays::stream).toArray();
  }

  private static double ratio(double one, double other, double ifNone) {
    return Double.isNaN(one) || Double.isNaN(other) || other == 0 ? ifNone : one / other;
  }

  /** How many of all pairs within batches share an extent; not a number where there are none. */
  private static double mates(ExtentCuts cuts, List<long[]> batches) {
    double pairs = 0;
    double mates = 0;
    for (long[] batch : batches) {
      long[] extents = Arrays.stream(batch).map(cuts::extentOf).toArray();
      for (int i = 0; i < extents.length; i++) {
        for (int j = 0; j < i; j++) {
          pairs++;
          mates += extents[i] == extents[j] ? 1 : 0;
        }
      }
    }
    return mates / pairs;
  }

  /** The most mates in a full batch. */
  private static double worst(ExtentCuts cuts, List<long[]> batches) {
    int full = batches.stream().mapToInt(batch -> batch.length).max().orElse(0);
    return batches.stream()
        .filter(batch -> batch.length == full)
        .mapToDouble(batch -> mates(cuts, List.of(batch)))
        .max()
        .orElse(Double.NaN);
  }

  private static double spread(ExtentCuts cuts, List<long[]> batches) {
    long[] order = batches.stream().flatMapToLong(Arrays::stream).toArray();
    double variances = 0;
    int counted = 0;
    for (long extent = 0; extent < cuts.count(); extent++) {
      long first = cuts.firstSample(extent);
      long end = cuts.firstSample(extent + 1);
      if (end - first < 2) {
        continue;
      }
      double[] at = new double[(int) (end - first)];
      for (int i = 0, next = 0; i < order.length; i++) {
        if (order[i] >= first && order[i] < end) {
          at[next++] = (i + 0.5) / order.length;
        }
      }
      double mean = Arrays.stream(at).average().orElse(0);
      variances += Arrays.stream(at).map(x -> (x - mean) * (x - mean)).sum() / (at.length - 1);
      counted++;
    }
    return counted == 0 ? 1 : Math.sqrt(12 * variances / counted);
  }

  private static final int SAMPLES = 20_000;
  private static final long EXTENT = 64 << 10;

  /** Three samples to an extent, so that 2 % of it are 133 frames. */
  private static final TestLayout LAYOUT = Layouts.fixed(SAMPLES, 21_000);

  private static Quality.Report measure(String policy, int ranks, double share) {
    long extents = ExtentCuts.cut(LAYOUT, EXTENT).count();
    long memory = (long) (share * extents / ranks) * EXTENT;
    PlanSettings settings = new PlanSettings(policy, 256 / ranks, memory, EXTENT, Tail.SHORT);
    PlanInputs inputs = PlanInputs.of(LAYOUT, 1, World.of(ranks), settings);
    PlannedOrder order = new PlannedOrder(Policies.named(policy).plan(inputs, 0));
    Quality quality = new Quality(inputs.cuts());
    for (Deliver[][] step = order.next(); step != null; step = order.next()) {
      quality.add(
          Arrays.stream(step)
              .map(batch -> Arrays.stream(batch).mapToLong(Deliver::sample).toArray())
              .toArray(long[][]::new));
    }
    return quality.report();
  }

  @Test
  void a_full_shuffle_is_as_random_as_chance() {
    for (String policy : Policies.names()) {
      Quality.Report report = measure(policy, 1, 1.5);
      assertThat(report.mateRatio()).as(policy).isBetween(0.8, 1.2);
      assertThat(report.spread()).as(policy).isBetween(0.97, 1.03);
    }
  }

  @Test
  void redirect_mixes_nearly_as_well_as_its_memory_allows() {
    for (double share : new double[] {0.02, 0.05, 0.1, 0.25}) {
      Quality.Report report = measure("redirect", 1, share);
      assertThat(report.mateRatio() * share).as("%s at %s", report, share).isLessThan(1.15);
      assertThat(report.worstBatch()).as("%s at %s", report, share).isLessThan(3);
    }
  }

  @Test
  void the_dataset_in_its_own_order_is_as_bad_as_can_be() {
    ExtentCuts cuts = ExtentCuts.cut(Layouts.fixed(1000, 4096), 10 * 4096);
    Quality quality = new Quality(cuts);
    for (long first = 0; first < 1000; first += 10) {
      Quality.Mates mates =
          quality.add(new long[][] {LongStream.range(first, first + 10).toArray()});
      assertThat(mates.pairs()).isEqualTo(45);
      assertThat(mates.byChance()).isCloseTo(45 * 9 / 999.0, within(1e-9));
    }
    Quality.Report report = quality.report();
    assertThat(report.mateRatio()).isCloseTo(999 / 9.0, within(1e-9));
    assertThat(report.distinctExtents()).isEqualTo(1);
    assertThat(report.worstBatch()).isCloseTo(1, within(1e-9));
    assertThat(report.spread()).isLessThan(0.02);
  }
}
