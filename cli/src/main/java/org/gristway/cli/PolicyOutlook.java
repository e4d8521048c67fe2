package org.gristway.cli;

import org.gristway.plan.ReadPolicy;
import org.jspecify.annotations.Nullable;

/**
 * What a policy would do, or why it cannot.
 *
 * @param epoch what it would do, or null if it cannot
 * @param refusal why it cannot; empty if it can
 */
record PolicyOutlook(ReadPolicy policy, @Nullable PlannedEpoch epoch, String refusal) {

  static PolicyOutlook of(ReadPolicy policy, PlannedEpoch epoch) {
    return new PolicyOutlook(policy, epoch, "");
  }

  static PolicyOutlook refused(ReadPolicy policy, String why) {
    return new PolicyOutlook(policy, null, why);
  }
}
