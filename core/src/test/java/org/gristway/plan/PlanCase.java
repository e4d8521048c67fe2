package org.gristway.plan;

import java.util.Random;

/** Something to plan: a policy, what it plans from, and a name for failures. */
public record PlanCase(String name, ReadPolicy policy, PlanInputs inputs, long epoch) {

  /** A case in which anything may be odd: the layout, the world, the settings, the samples. */
  public static PlanCase random(ReadPolicy policy, long seed) {
    Random random = new Random(seed);
    TestLayout layout = Layouts.random(random);
    int ranks = 1 + random.nextInt(9);
    World world = new World(ranks, 1 + random.nextInt(ranks), 0);
    PlanSettings settings = settings(random, policy, layout);
    PlanInputs inputs = PlanInputs.of(layout, random.nextLong(), world, settings);
    if (random.nextInt(3) == 0) {
      inputs = inputs.with(someOf(random, layout), random.nextInt(3));
    }
    String name =
        "random case %d, %s: %d samples of a %s, %s, %s"
            .formatted(seed, policy.name(), inputs.samples().count(), layout.id(), world, settings);
    return new PlanCase(name, policy, inputs, random.nextInt(4));
  }

  /** Settings with enough memory for any policy. */
  static PlanSettings settings(Random random, ReadPolicy policy, TestLayout layout) {
    int[] mostBatches = {1, 3, 20, 300};
    int batch = 1 + random.nextInt(mostBatches[random.nextInt(mostBatches.length)]);
    long pages = random.nextBoolean() ? 1L << random.nextInt(9) : 1 + random.nextInt(256);
    long extent = pages * ExtentCuts.PAGE;
    int[] mostFrames = {1, 20, 2 + 2 * (int) ExtentCuts.cut(layout, extent).count()};
    long frames = 2 + random.nextInt(mostFrames[random.nextInt(mostFrames.length)]);
    Tail tail = Tail.values()[random.nextInt(3)];
    long memory = frames * extent + random.nextInt((int) extent);
    PlanSettings settings = new PlanSettings(policy.name(), batch, memory, extent, tail);
    return random.nextInt(4) == 0 ? settings.withExchange(exchange(random)) : settings;
  }

  /** Any share, and any window that tells something. */
  public static Exchange exchange(Random random) {
    double[] shares = {0.01, 0.5, 1, random.nextDouble()};
    Exchange exchange = new Exchange(shares[random.nextInt(4)], 1 + random.nextInt(5));
    return exchange.share() == 1 && random.nextBoolean()
        ? exchange.withHomes(Homes.HASHED)
        : exchange;
  }

  private static SampleSet someOf(Random random, TestLayout layout) {
    double share = random.nextDouble();
    int run = 1 + random.nextInt(30); // samples that are in or out together
    long salt = random.nextLong();
    return SampleSet.where(
        layout.sampleCount(),
        sample -> new Draws(Draws.key(salt, sample / run)).below(1000) < 1000 * share);
  }

  public ReadPlan plan() {
    return policy.plan(inputs, epoch);
  }

  public TestLayout layout() {
    return (TestLayout) inputs.layout();
  }

  public PlanSettings settings() {
    return inputs.settings();
  }

  public int ranks() {
    return inputs.world().ranks();
  }

  /** Samples of a full step over all ranks. */
  public long globalBatch() {
    return (long) ranks() * settings().batchSize();
  }

  public PlanCase withSeed(long seed) {
    return withInputs(
        new PlanInputs(
            inputs.layout(),
            inputs.cuts(),
            inputs.samples(),
            seed,
            inputs.segment(),
            inputs.world(),
            settings()));
  }

  public PlanCase withEpoch(long other) {
    return new PlanCase(name, policy, inputs, other);
  }

  public PlanCase withNodes(int nodes) {
    return withInputs(
        new PlanInputs(
            inputs.layout(),
            inputs.cuts(),
            inputs.samples(),
            inputs.seed(),
            inputs.segment(),
            new World(ranks(), nodes, 0),
            settings()));
  }

  public PlanCase withSettings(PlanSettings other) {
    return new PlanCase(name + " as " + other, policy, inputs.with(other), epoch);
  }

  public PlanCase withInputs(PlanInputs other) {
    return new PlanCase(name, policy, other, epoch);
  }
}
