package org.gristway.plan.policy;

import org.gristway.plan.ReadPolicy;
import org.junit.jupiter.api.Tag;

/** The paper's own rule for what is kept is held to the contract too. */
@Tag("java")
class ClairvoyantByFrequencyTest extends StretchPolicyContract {

  @Override
  ReadPolicy policy() {
    return ClairvoyantPolicy.byFrequency();
  }
}
