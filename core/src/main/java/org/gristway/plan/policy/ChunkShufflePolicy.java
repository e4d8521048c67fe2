package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;

/**
 * Takes extents in groups that fill the memory, in random order, and shuffles the samples of each
 * group. After DIESEL: <i>A Dataset-Based Distributed Storage and Caching System for Large-Scale
 * Deep Learning Training</i> (Wang et al., 2020), whose chunk-wise shuffle this is.
 *
 * <p>Changed against the paper: the unit is the extent instead of the chunk, and a frame is given
 * to the next group as soon as its extent is used up, so that the storage does not rest until a
 * whole group has ended.
 */
public final class ChunkShufflePolicy implements ReadPolicy {

  public static final String NAME = "chunk-shuffle";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int planVersion() {
    return 1;
  }

  @Override
  public boolean exchanges() {
    return true;
  }

  @Override
  public ReadPlan plan(PlanInputs inputs, long epoch) {
    return ExtentPlan.of(inputs, epoch, Pool::new);
  }

  private static final class Pool extends ExtentPool {

    private final int group;
    private Weights weights = new Weights(0);
    private long groupUnopened; // samples of the group's pieces that are not open yet

    Pool(ExtentPlan plan, int rank) {
      super(plan, rank);
      this.group = plan.drawable();
    }

    @Override
    int draw() {
      if (samplesOpen() + groupUnopened == 0) {
        restart();
        long size = Math.min(group, unopened());
        weights = new Weights((int) size);
        groupUnopened = samplesOfNext(size);
      }
      long at = draws.below(samplesOpen() + groupUnopened);
      if (at < samplesOpen()) {
        return weights.find(at);
      }
      return openCount();
    }

    @Override
    void opened(int samples) {
      weights.add(openCount() - 1, samples);
      groupUnopened -= samples;
    }

    @Override
    void passed() {
      groupUnopened--;
    }

    @Override
    void drawn(int index, int left) {
      weights.add(index, -1);
    }

    @Override
    boolean closesGaps() {
      return false;
    }
  }
}
