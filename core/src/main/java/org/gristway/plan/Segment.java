package org.gristway.plan;

import org.gristway.Failure;

/**
 * A stretch of an epoch's steps that is run in one world with one set of settings.
 *
 * @param settings of the user
 * @param planVersion of the policy
 * @param ranks of the world
 * @param steps that every rank has received
 */
public record Segment(PlanSettings settings, int planVersion, int ranks, long steps) {

  public Segment {
    if (ranks < 1 || ranks > World.MOST_RANKS || steps < 0 || planVersion < 1) {
      throw Failure.damaged(
          "no segment has %d ranks, %d steps and plan version %d", ranks, steps, planVersion);
    }
  }

  /** True if going on in this segment gives the order that it would have had. */
  boolean goesOnAs(PlanSettings other, int otherRanks) {
    return settings.equals(other) && ranks == otherRanks;
  }
}
