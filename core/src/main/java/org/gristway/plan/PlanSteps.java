package org.gristway.plan;

import org.jspecify.annotations.Nullable;

/**
 * The steps of one lane, pulled one by one. Lazy: what is not pulled is not computed. For one
 * thread at a time.
 */
public interface PlanSteps {

  /** The next step, or null when there are no more. */
  @Nullable PlanStep next();

  /**
   * True while a {@code Load} into a frame may still come. Once it is false, released frames stay
   * free until the next epoch, whose first loads may therefore begin.
   */
  boolean loadsLeft();
}
