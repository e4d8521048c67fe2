package org.gristway.plan.policy;

import org.gristway.plan.ReadPolicy;
import org.junit.jupiter.api.Tag;

@Tag("java")
class RedirectPolicyTest extends ExtentPolicyContract {

  @Override
  ReadPolicy policy() {
    return new RedirectPolicy();
  }
}
