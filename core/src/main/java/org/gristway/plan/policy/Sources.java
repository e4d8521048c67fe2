package org.gristway.plan.policy;

import org.gristway.plan.Draws;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Choice;
import org.gristway.plan.Shares;

/**
 * Which rank reads the sample of each place, over all ranks, step by step. With the plan's share of
 * exchange it is drawn over all ranks in proportion to the samples that each has left; otherwise it
 * is the place's own rank, while that has some.
 */
final class Sources {

  /** Numbers that a share is compared with. */
  private static final long WHOLE = 1L << 32;

  private final Shares shares;
  private final int ranks;
  private final long exchanged;
  private final Draws draws;
  private final long[] left; // samples of each rank
  private final Weights weights; // the same
  private long total;
  private long step;

  Sources(ExtentPlan plan) {
    PlanInputs inputs = plan.inputs();
    this.shares = inputs.shares();
    this.ranks = inputs.world().ranks();
    this.exchanged = Math.round(inputs.settings().exchange().share() * WHOLE);
    this.draws = new Draws(inputs.key(plan.epoch(), Choice.SOURCES));
    this.left = new long[ranks];
    this.weights = new Weights(ranks);
    for (int rank = 0; rank < ranks; rank++) {
      left[rank] = plan.deal().samples(rank);
      weights.add(rank, left[rank]);
      total += left[rank];
    }
  }

  /** The sources of the next step: by rank and position. */
  int[][] next() {
    int[][] sources = new int[ranks][];
    for (int rank = 0; rank < ranks; rank++) {
      sources[rank] = new int[shares.fresh(rank, step)];
      for (int position = 0; position < sources[rank].length; position++) {
        sources[rank][position] = draw(rank);
      }
    }
    step++;
    return sources;
  }

  private int draw(int rank) {
    boolean isOwn = draws.below(WHOLE) >= exchanged && left[rank] > 0;
    int source = isOwn ? rank : weights.find(draws.below(total));
    left[source]--;
    weights.add(source, -1);
    total--;
    return source;
  }
}
