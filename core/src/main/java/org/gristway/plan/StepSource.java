package org.gristway.plan;

import org.jspecify.annotations.Nullable;

/** Steps that are carried out one after the other, of one epoch or of several. For one thread. */
public interface StepSource {

  /** The next step, or null if there is none now. */
  @Nullable PlanStep next();

  /** The epoch that the last step belongs to: a load may be of the one after the others. */
  long epoch();
}
