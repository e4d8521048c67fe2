package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import org.gristway.Failure.Kind;
import org.gristway.plan.ReadPolicy;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class PoliciesTest {

  @Test
  void every_policy_is_found_by_its_name() {
    for (ReadPolicy policy : Policies.all()) {
      assertThat(Policies.named(policy.name())).isSameAs(policy);
    }
    assertThat(Policies.names()).doesNotHaveDuplicates().contains(Policies.DEFAULT);
  }

  @Test
  void an_unknown_name_is_refused_with_the_names_there_are() {
    assertFails(
        Kind.WRONG_CALL, () -> Policies.named("no-such"), "no-such", "redirect", "unbounded");
  }

  @Test
  void every_policy_is_held_to_the_contract() throws ClassNotFoundException {
    for (ReadPolicy policy : Policies.all()) {
      Class<?> test = Class.forName(policy.getClass().getName() + "Test");
      assertThat(ReadPolicyContract.class).isAssignableFrom(test);
    }
  }
}
