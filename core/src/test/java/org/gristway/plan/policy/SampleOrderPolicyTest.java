package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.gristway.chunk.Extent;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPolicy;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class SampleOrderPolicyTest extends EagerPolicyContract {

  @Override
  ReadPolicy policy() {
    return new SampleOrderPolicy();
  }

  @Override
  int fewestFrames() {
    return 1;
  }

  @Test
  void what_is_asked_for_is_delivered() {
    forEveryCase(
        each ->
            assertThat(Pulled.deliveries(each.plan()))
                .allMatch(deliver -> deliver.request() == deliver.sample()));
  }

  @Test
  void every_delivery_has_one_read_of_its_sample_alone() {
    forEveryCase(
        each -> {
          for (List<PlanStep> lane : Pulled.byRank(each.plan())) {
            List<Extent> delivered =
                Pulled.deliveries(lane).stream()
                    .filter(deliver -> !deliver.repeat())
                    .map(Deliver::sample)
                    .map(each.layout()::location)
                    .toList();
            assertThat(Pulled.loads(lane).stream().map(Load::extent).toList())
                .containsExactlyInAnyOrderElementsOf(delivered);
            assertThat(Pulled.loads(lane)).noneMatch(Load::again);
          }
        });
  }
}
