package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.gristway.pack.Packs.assertFails;

import java.util.List;
import org.gristway.Failure.Kind;
import org.gristway.plan.Exchange;
import org.gristway.plan.Homes;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Tail;
import org.gristway.plan.TestLayout;
import org.gristway.plan.World;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Extents that have a home among all ranks. */
@Tag("java")
class HashedHomesTest extends HomesContract {

  private static final TestLayout LAYOUT = Layouts.fixed(40_000, 1000);

  private static final long SEED = Seeds.of("HashedHomesTest");

  @Override
  ReadPolicy policy() {
    return new RedirectPolicy();
  }

  @Override
  Homes homes() {
    return Homes.HASHED;
  }

  private static PlanInputs inputs(int ranks) {
    PlanSettings settings =
        new PlanSettings("redirect", 32, 1 << 20, 1 << 14, Tail.SHORT)
            .withExchange(Exchange.of(1).withHomes(Homes.HASHED));
    return PlanInputs.of(LAYOUT, SEED, World.of(ranks), settings);
  }

  @Test
  void a_rank_that_is_added_takes_its_share_and_nothing_else_moves() {
    for (int ranks : new int[] {1, 2, 7, 30}) {
      ExtentHomes before = new ExtentHomes(inputs(ranks));
      ExtentHomes after = new ExtentHomes(inputs(ranks + 1));
      long extents = inputs(ranks).cuts().count();
      long moved = 0;
      for (long extent = 0; extent < extents; extent++) {
        if (after.rankOf(extent) != before.rankOf(extent)) {
          assertThat(after.rankOf(extent)).isEqualTo(ranks);
          moved++;
        }
      }
      double share = 1.0 / (ranks + 1);
      double deviation = Math.sqrt(share * (1 - share) / extents);
      assertThat((double) moved / extents).isCloseTo(share, within(5 * deviation));
    }
  }

  @Test
  void ranks_have_about_as_much_at_home() {
    PlanInputs inputs = inputs(8);
    HomeDeal deal = new HomeDeal(inputs, 0);
    for (int rank = 0; rank < 8; rank++) {
      assertThat(deal.samples(rank)).isBetween(3_000L, 7_000L);
    }
  }

  @Test
  void a_rank_reads_its_extents_in_another_order_in_every_epoch() {
    List<PlanStep> first = Pulled.all(policy().plan(inputs(3), 0).lane(1, true));
    List<PlanStep> second = Pulled.all(policy().plan(inputs(3), 1).lane(1, true));
    assertThat(Pulled.loads(first)).hasSameSizeAs(Pulled.loads(second));
    assertThat(Pulled.loads(first)).isNotEqualTo(Pulled.loads(second));
  }

  @Test
  void another_seed_gives_other_homes() {
    PlanInputs one = inputs(4);
    PlanInputs other = PlanInputs.of(LAYOUT, SEED + 1, one.world(), one.settings());
    ExtentHomes homes = new ExtentHomes(one);
    ExtentHomes others = new ExtentHomes(other);
    long extents = one.cuts().count();
    long same = 0;
    for (long extent = 0; extent < extents; extent++) {
      same += homes.rankOf(extent) == others.rankOf(extent) ? 1 : 0;
    }
    assertThat((double) same / extents).isCloseTo(0.25, within(0.05));
  }

  @Test
  void homes_that_stay_need_all_to_be_exchanged() {
    for (double share : new double[] {0, 0.99}) {
      assertFails(
          Kind.WRONG_CALL,
          () -> Exchange.of(share).withHomes(Homes.HASHED),
          "hashed",
          "1, not " + share);
    }
  }
}
