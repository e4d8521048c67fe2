package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.gristway.plan.Exchange;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.Homes;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.Pulled;
import org.junit.jupiter.api.Test;

/** What ranks keep that have extents at home. */
abstract class HomesContract extends ExchangeContract {

  abstract Homes homes();

  @Override
  final PlanSettings adapted(PlanSettings settings) {
    int window = 1 + (int) (settings.memory() % 5);
    return settings.withExchange(new Exchange(1, window, homes()));
  }

  @Test
  void a_rank_reads_what_is_at_home_with_it_in_every_epoch_and_nothing_else() {
    forEveryCase(
        each -> {
          ExtentHomes homes = new ExtentHomes(each.inputs());
          ExtentCuts cuts = each.inputs().cuts();
          for (long epoch = 0; epoch < 3; epoch++) {
            List<List<PlanStep>> lanes = Pulled.byRank(each.withEpoch(epoch).plan());
            for (int rank = 0; rank < each.ranks(); rank++) {
              // Those for repeats too: another node's storage may be out of reach.
              for (Load load : Pulled.of(Load.class, lanes.get(rank))) {
                int[] samples = each.layout().samplesIn(load.extent());
                if (samples.length > 0) {
                  assertThat(homes.rankOf(cuts.extentOf(samples[0]))).isEqualTo(rank);
                }
              }
            }
          }
        });
  }

  @Test
  void ranks_have_together_what_the_epoch_delivers() {
    forEveryCase(
        each -> {
          HomeDeal deal = new HomeDeal(each.inputs(), each.epoch());
          long dealt = 0;
          for (int rank = 0; rank < each.ranks(); rank++) {
            long count = 0;
            for (long piece = 0; piece < deal.pieces(rank); piece++) {
              assertThat(deal.run(rank, piece).count()).isPositive();
              count += deal.run(rank, piece).count();
            }
            assertThat(count).isEqualTo(deal.samples(rank));
            dealt += count;
          }
          assertThat(dealt).isEqualTo(each.inputs().shares().samples());
        });
  }
}
