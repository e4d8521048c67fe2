package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;

/**
 * Delivers the requested order exactly. Each rank keeps the samples that it will be asked for most
 * often, in memory and on its disk, and gets every other from the fastest place that has it: a rank
 * that keeps it, or the store. After NoPFS: <i>Clairvoyant Prefetching for Distributed Machine
 * Learning I/O</i> (Dryden et al., 2021).
 *
 * <p>All ranks are asked for a sample equally often on average, but not each: over E epochs and N
 * ranks the numbers have a binomial distribution, and its upper end is what is worth keeping.
 *
 * <p>Changed against the paper: a sample is kept when it is first delivered where it is to be kept,
 * so what is where follows from the plan and nobody guesses; frequencies are counted, and
 * placements made, for 32 epochs at a time.
 */
public final class ClairvoyantPolicy extends StretchPolicy {

  public static final String NAME = "clairvoyant";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int planVersion() {
    return 1;
  }

  @Override
  TierTable table(PlanInputs inputs, Accesses accesses, long memory) {
    return new Placement(inputs, accesses, memory).table();
  }
}
