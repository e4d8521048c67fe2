package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;

/**
 * Delivers the requested order exactly. Each rank keeps the samples that it will be asked for again
 * soonest, and drops the others: Belady's rule (<i>A study of replacement algorithms for a
 * virtual-storage computer</i>, 1966), which needs to know the future, and here does. All else is
 * as in {@link ClairvoyantPolicy}, which never drops a sample of a stretch for another.
 *
 * <p>Changed against Belady: samples have sizes, there are two tiers, and room that no sample of a
 * rank's own needs is for those that others will be asked for.
 */
public final class ClairvoyantNextUsePolicy extends StretchPolicy {

  public static final String NAME = "clairvoyant-next-use";

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
    return new NextUse(inputs, accesses, memory).table();
  }
}
