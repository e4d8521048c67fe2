package org.gristway.plan;

import org.gristway.Failure;

/**
 * A stretch of an epoch's steps that is run in one world with one set of settings.
 *
 * @param settings of the user
 * @param planVersion of the policy
 * @param ranks of the world
 * @param nodes of the world; 1 where the order does not depend on them
 * @param steps that every rank has received
 */
public record Segment(PlanSettings settings, int planVersion, int ranks, int nodes, long steps) {

  public Segment {
    if (ranks < 1 || ranks > World.MOST_RANKS || steps < 0 || planVersion < 1) {
      throw Failure.damaged(
          "no segment has %d ranks, %d steps and plan version %d", ranks, steps, planVersion);
    }
    if (nodes < 1 || nodes > ranks) {
      throw Failure.damaged("no segment has %d ranks on %d nodes", ranks, nodes);
    }
  }

  /** Of orders that do not depend on nodes. */
  public Segment(PlanSettings settings, int planVersion, int ranks, long steps) {
    this(settings, planVersion, ranks, 1, steps);
  }

  /** So many steps of a plan. */
  static Segment of(PlanInputs inputs, int planVersion, long steps) {
    return new Segment(
        inputs.settings(), planVersion, inputs.world().ranks(), nodes(inputs), steps);
  }

  private static int nodes(PlanInputs inputs) {
    return inputs.settings().exchange().homes() == Homes.PLACED ? inputs.world().nodes() : 1;
  }

  /** True if going on in this segment gives the order that it would have had. */
  boolean goesOnAs(PlanInputs inputs) {
    return equals(of(inputs, planVersion, steps));
  }
}
