package org.gristway.benchmarks;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import org.gristway.chunk.Extent;
import org.gristway.plan.Draws;
import org.gristway.plan.Permutation;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlannedOrder;
import org.gristway.plan.Quality;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;

/**
 * How well each policy mixes at the same memory, and beside them the shuffle buffer that most
 * loaders have: shards in random order, read in sequence into a buffer of that memory, from which a
 * random sample is taken each time. Nothing is read: orders are computed. One epoch, batches of
 * 256.
 */
final class MixingBenchmark implements Main.Benchmark {

  private static final int BATCH = 256;
  private static final long EXTENT = 1 << 20;

  /** Samples of one size in chunks of 64 MiB. */
  record Layout(long sampleCount, long size) implements SampleLayout {

    private long perChunk() {
      return (64 << 20) / size;
    }

    @Override
    public String id() {
      return "samples of " + size + " bytes";
    }

    @Override
    public int chunkCount() {
      return Math.toIntExact((sampleCount + perChunk() - 1) / perChunk());
    }

    @Override
    public long firstSample(int chunk) {
      return Math.min(sampleCount, chunk * perChunk());
    }

    @Override
    public Extent location(long sample) {
      long offset = 4096 + sample % perChunk() * size;
      return new Extent((int) (sample / perChunk()), offset, size);
    }

    @Override
    public long length(long sample) {
      return size;
    }
  }

  @Override
  public void run(Path folder, int rounds) {
    System.out.println(
        "| samples | memory | order | mate ratio | × memory / dataset | worst batch / mean | distinct"
            + " extents a batch | spread |");
    System.out.println("|---|---|---|---|---|---|---|---|");
    measure(new Layout(100_000, 110_000));
    measure(new Layout(1_000_000, 10_000));
  }

  private static void measure(Layout layout) {
    for (double share : new double[] {0.02, 0.05, 0.10, 0.25}) {
      long memory = (long) (layout.sampleCount() * layout.size() * share);
      for (String policy : new String[] {"redirect", "chunk-shuffle"}) {
        PlanInputs inputs =
            PlanInputs.of(
                layout,
                1,
                World.of(1),
                new PlanSettings(policy, BATCH, memory, EXTENT, Tail.SHORT));
        Quality quality = new Quality(inputs.cuts());
        PlannedOrder order = new PlannedOrder(Policies.named(policy).plan(inputs, 0));
        for (Deliver[][] step = order.next(); step != null; step = order.next()) {
          quality.add(new long[][] {Arrays.stream(step[0]).mapToLong(Deliver::sample).toArray()});
        }
        print(layout, share, policy, quality.report());
      }
      print(layout, share, "shuffle buffer", shuffleBuffer(layout, memory));
    }
  }

  private static Quality.Report shuffleBuffer(Layout layout, long memory) {
    PlanInputs inputs =
        PlanInputs.of(
            layout, 1, World.of(1), new PlanSettings("", BATCH, memory, EXTENT, Tail.SHORT));
    Quality quality = new Quality(inputs.cuts());
    long[] buffer = new long[(int) (memory / layout.size())];
    Permutation shards = new Permutation(layout.chunkCount(), Draws.key(1));
    Draws draws = new Draws(Draws.key(2));
    long[] batch = new long[BATCH];
    int filled = 0;
    int inBatch = 0;
    for (int shard = 0; shard < layout.chunkCount(); shard++) {
      int chunk = (int) shards.at(shard);
      for (long sample = layout.firstSample(chunk);
          sample < layout.firstSample(chunk + 1);
          sample++) {
        if (filled < buffer.length) {
          buffer[filled++] = sample;
          continue;
        }
        int at = (int) draws.below(filled);
        batch[inBatch++] = buffer[at];
        buffer[at] = sample;
        inBatch = flush(quality, batch, inBatch);
      }
    }
    while (filled > 0) {
      int at = (int) draws.below(filled);
      batch[inBatch++] = buffer[at];
      buffer[at] = buffer[--filled];
      inBatch = flush(quality, batch, inBatch);
    }
    quality.add(new long[][] {Arrays.copyOf(batch, inBatch)});
    return quality.report();
  }

  private static int flush(Quality quality, long[] batch, int count) {
    if (count < BATCH) {
      return count;
    }
    quality.add(new long[][] {batch.clone()});
    return 0;
  }

  private static void print(Layout layout, double share, String order, Quality.Report report) {
    System.out.printf(
        Locale.ROOT,
        "| %,d × %,d bytes | %.0f %% | %s | %.2f | %.3f | %.2f | %.1f | %.3f |%n",
        layout.sampleCount(),
        layout.size(),
        100 * share,
        order,
        report.mateRatio(),
        report.mateRatio() * share,
        report.worstBatch(),
        report.distinctExtents(),
        report.spread());
  }
}
