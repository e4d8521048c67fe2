package org.gristway.plan;

/**
 * All that a plan depends on, except its epoch.
 *
 * @param layout of the dataset
 * @param cuts of it, by the settings' extent size
 * @param samples that are to be delivered, once each
 * @param seed of everything random
 * @param segment how many segments of the epoch came before this one
 * @param world in which it is carried out
 * @param settings of the user
 */
public record PlanInputs(
    SampleLayout layout,
    ExtentCuts cuts,
    SampleSet samples,
    long seed,
    int segment,
    World world,
    PlanSettings settings) {

  /** A whole epoch over a whole dataset. */
  public static PlanInputs of(SampleLayout layout, long seed, World world, PlanSettings settings) {
    return new PlanInputs(
        layout,
        ExtentCuts.cut(layout, settings.extentBytes()),
        SampleSet.all(layout.sampleCount()),
        seed,
        0,
        world,
        settings);
  }

  /** The same with other samples to deliver, as a later segment of an epoch. */
  public PlanInputs with(SampleSet left, int ofSegment) {
    return new PlanInputs(layout, cuts, left, seed, ofSegment, world, settings);
  }

  /** The same with other settings, of the same extent size. */
  public PlanInputs with(PlanSettings other) {
    return new PlanInputs(layout, cuts, samples, seed, segment, world, other);
  }

  public Shares shares() {
    return new Shares(samples.count(), world.ranks(), settings.batchSize(), settings.tail());
  }

  /** The key of a kind of random choice in an epoch. */
  public long key(long epoch, Choice choice) {
    return Draws.key(seed, epoch, segment, choice.ordinal());
  }

  /** The order in which a plain loader would ask for the samples. */
  public Requests requests(long epoch) {
    return new Requests(samples, new Permutation(samples.count(), key(epoch, Choice.REQUESTS)));
  }

  /** What is chosen at random, each with numbers of its own. Never reordered: orders hang on it. */
  public enum Choice {
    REQUESTS,
    EXTENTS,
    DRAWS,
    IN_EXTENT,
    SOURCES,
    DROPPED
  }

  /** A random order of the samples. */
  public record Requests(SampleSet samples, Permutation order) {

    public long at(long i) {
      return samples.nth(order.at(i));
    }
  }
}
