package org.gristway.plan.policy;

import java.util.ArrayDeque;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanSteps;
import org.jspecify.annotations.Nullable;

/**
 * A lane that loads whenever it can, and otherwise fills the next place of its batches, to the end
 * of the epoch.
 */
abstract class BatchLane implements PlanSteps {

  /** The places that are filled. */
  final Places places;

  /** What is decided, and not pulled yet. */
  final ArrayDeque<PlanStep> steps = new ArrayDeque<>();

  private final long epoch;
  private boolean ended;

  BatchLane(Places places, long epoch) {
    this.places = places;
    this.epoch = epoch;
  }

  /** Adds the step of the next load, if there is one and room for it; true if it did. */
  abstract boolean load();

  /** Adds the steps that fill the next place with a sample that is due. */
  abstract void deliver();

  @Override
  public final @Nullable PlanStep next() {
    if (steps.isEmpty() && !load()) {
      if (!places.isDone()) {
        if (places.isFresh()) {
          deliver();
        } else {
          places.repeat(steps);
        }
      } else if (!ended) {
        ended = true;
        steps.add(new PlanStep.EpochEnd(epoch));
      }
    }
    return steps.poll();
  }
}
