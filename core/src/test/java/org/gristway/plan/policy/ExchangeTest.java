package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.gristway.pack.Packs.assertFails;

import java.util.List;
import java.util.Random;
import org.gristway.Failure.Kind;
import org.gristway.plan.Exchange;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanCase;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Send;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Ranks that mix what they read, whoever reads it. */
@Tag("java")
class ExchangeTest extends ExchangeContract {

  private static final long SEED = Seeds.of("ExchangeTest");

  @Override
  ReadPolicy policy() {
    return new RedirectPolicy();
  }

  @Override
  PlanSettings adapted(PlanSettings settings) {
    return settings.withExchange(
        PlanCase.exchange(new Random(31 * settings.memory() + settings.batchSize())));
  }

  @Test
  void the_share_decides_how_much_moves() {
    for (double share : new double[] {0.25, 0.5, 1}) {
      PlanSettings settings =
          new PlanSettings("redirect", 32, 1 << 20, 1 << 16, Tail.SHORT)
              .withExchange(Exchange.of(share));
      PlanInputs inputs = PlanInputs.of(Layouts.fixed(20_000, 1000), SEED, World.of(4), settings);
      List<List<PlanStep>> lanes = Pulled.byRank(policy().plan(inputs, 0));
      long moved = lanes.stream().mapToLong(lane -> Pulled.of(Send.class, lane).size()).sum();
      // Of what is drawn over all four ranks, a quarter stays where it was read.
      assertThat(moved / 20_000.0).isEqualTo(share * 3 / 4, within(0.02));
    }
  }

  @Test
  void without_a_share_ranks_read_for_themselves() {
    for (int i = 0; i < 20; i++) {
      PlanCase each = PlanCase.random(policy(), SEED + i);
      PlanSettings none = each.settings().withExchange(new Exchange(0, 5));
      PlanSettings usual = each.settings().withExchange(Exchange.NONE);
      assertThat(Pulled.byRank(each.withSettings(none).plan()))
          .isEqualTo(Pulled.byRank(each.withSettings(usual).plan()));
    }
  }

  @Test
  void odd_shares_and_windows_are_refused() {
    for (double share : new double[] {-0.1, 1.01, Double.NaN}) {
      assertFails(Kind.WRONG_CALL, () -> Exchange.of(share), "" + share);
    }
    for (int window : new int[] {0, -1, 65}) {
      assertFails(Kind.WRONG_CALL, () -> new Exchange(1, window), "" + window);
    }
  }
}
