package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;

/**
 * A policy that delivers the requested order exactly, and decides for a stretch of epochs at a time
 * what each rank keeps. Which rank gets which sample when is known for all of them, so every node
 * decides for all ranks alike, without a message. The next stretch begins with empty caches.
 */
abstract class StretchPolicy implements ReadPolicy {

  private final Shared<TierTable> tables = new Shared<>();

  /**
   * Decides what is kept.
   *
   * @param accesses of the stretch
   * @param memory bytes of each rank for samples; the disk is as the settings say
   */
  abstract TierTable table(PlanInputs inputs, Accesses accesses, long memory);

  @Override
  public final boolean caches() {
    return true;
  }

  @Override
  public final ReadPlan plan(PlanInputs inputs, long epoch) {
    Staging staging = Staging.of(inputs);
    int epochs = Math.min(TierTable.MOST_EPOCHS, inputs.settings().caching().epochs());
    long first = epoch - epoch % epochs;
    TierTable table =
        tables.of(
            inputs,
            first,
            () -> table(inputs, new Accesses(inputs, first, epochs), staging.cacheBytes()));
    return new Plan(inputs, epoch, staging, table, (int) (epoch - first));
  }

  private record Plan(
      PlanInputs inputs, long epoch, Staging staging, TierTable table, int inStretch)
      implements StagedPlan {

    /** With a new stretch the caches are emptied, before anything else. */
    @Override
    public long bytesAtStart() {
      return table.bytesInMemory(inputs.layout(), inStretch);
    }

    @Override
    public PlanSteps lane(int rank, boolean cold) {
      return new TierLane(this, table, inStretch, rank, cold);
    }
  }
}
