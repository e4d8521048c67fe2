package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.jspecify.annotations.Nullable;

/**
 * Answers each request with some sample that is in memory and has not been delivered in this epoch,
 * so that every extent is read whole, once, ahead of need. After Redox: <i>Improving I/O Efficiency
 * of Model Training Through File Redirection</i> (Li et al., 2025).
 *
 * <p>Each draw picks one of D open extents, all with the same chance, and takes its next sample; an
 * extent that is used up makes room for the next one. Drawing extents first mixes twice as well as
 * drawing among all samples in memory, which prefers extents that have just come.
 *
 * <p>Changed against the paper: draws are planned ahead, so that loads run ahead in the order of
 * their first draw; and the end of the epoch is drawn in proportion to what each extent has left,
 * since otherwise the last batches come from a handful of extents. With a memory that holds the
 * whole epoch this rule holds from the start, and the order is a full shuffle.
 *
 * <p>Next on the way from file to tensor: {@link org.gristway.read.PlanExecutor}, which carries the
 * steps out.
 */
public final class RedirectPolicy implements ReadPolicy {

  public static final String NAME = "redirect";

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

    private final int drawable;
    private @Nullable Weights ending; // once all that is left fits the drawable frames

    Pool(ExtentPlan plan, int rank) {
      super(plan, rank);
      this.drawable = plan.drawable();
    }

    @Override
    int draw() {
      if (ending == null && unopened() <= drawable - openCount()) {
        ending = weightsOfOpen();
      }
      return ending == null
          ? Math.min((int) draws.below(drawable), openCount())
          : drawInProportion(ending);
    }

    /**
     * The extents that are not open yet are random ones in a random order, so which of them comes
     * next need not be drawn.
     */
    private int drawInProportion(Weights weights) {
      long at = draws.below(samplesLeft());
      return at < samplesOpen() ? weights.find(at) : openCount();
    }

    private Weights weightsOfOpen() {
      Weights weights = new Weights((int) (openCount() + unopened()));
      for (int i = 0; i < openCount(); i++) {
        weights.add(i, left(i));
      }
      return weights;
    }

    @Override
    void opened(int samples) {
      if (ending != null) {
        ending.add(openCount() - 1, samples);
      }
    }

    @Override
    void drawn(int index, int left) {
      if (ending != null) {
        ending.add(index, -1);
      }
    }

    @Override
    boolean closesGaps() {
      return ending == null;
    }
  }
}
