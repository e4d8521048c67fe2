package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;

/**
 * Delivers the requested order exactly. Each rank keeps the samples that are worth most to keep
 * there, in memory and on its disk, and gets every other from the fastest place that has it: a rank
 * that keeps it, or the store. After NoPFS: <i>Clairvoyant Prefetching for Distributed Machine
 * Learning I/O</i> (Dryden et al., 2021).
 *
 * <p>All ranks are asked for a sample equally often on average, but not each: over E epochs and N
 * ranks the numbers have a binomial distribution, and its upper end is what is worth keeping.
 *
 * <p>Changed against the paper: a sample is kept when it is first delivered where it is to be kept,
 * so what is where follows from the plan and nobody guesses; where other nodes are much faster than
 * the store, one copy of every sample comes before a second of those that are asked for often, so
 * that a dataset is read once that fits the caches of all ranks with a little to spare; frequencies
 * are counted, and placements made, for 32 epochs at a time.
 */
public final class ClairvoyantPolicy extends StretchPolicy {

  public static final String NAME = "clairvoyant";

  private final boolean byFrequency;

  public ClairvoyantPolicy() {
    this(false);
  }

  private ClairvoyantPolicy(boolean byFrequency) {
    this.byFrequency = byFrequency;
  }

  /** The paper's own rule for what is kept, to compare with. */
  public static ClairvoyantPolicy byFrequency() {
    return new ClairvoyantPolicy(true);
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int planVersion() {
    return 2;
  }

  @Override
  TierTable table(PlanInputs inputs, Accesses accesses, long memory) {
    KeepingOrder order = new KeepingOrder(inputs, accesses.epochs(), byFrequency);
    return new Placement(inputs, accesses, order, memory).table();
  }
}
