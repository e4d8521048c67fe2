package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanCase;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.Pulled;
import org.junit.jupiter.api.Test;

/** What every policy keeps that reads whole extents, each once. */
abstract class ExtentPolicyContract extends EagerPolicyContract {

  @Override
  final int fewestFrames() {
    return 2;
  }

  @Test
  void the_bytes_of_every_sample_are_read_once() {
    forEveryCase(
        each -> {
          List<List<PlanStep>> lanes = Pulled.byRank(each.plan());
          int[] times = new int[(int) each.layout().sampleCount()];
          for (Load load : loads(lanes)) {
            long bytes = 0;
            for (int sample : each.layout().samplesIn(load.extent())) {
              times[sample]++;
              bytes += each.layout().length(sample);
            }
            assertThat(bytes).as("whole samples of %s", load).isEqualTo(load.extent().length());
          }
          assertThat(Arrays.stream(times)).allMatch(count -> count <= 1);
          for (List<PlanStep> lane : lanes) {
            for (Deliver deliver : Pulled.deliveries(lane)) {
              int sample = (int) deliver.sample();
              assertThat(times[sample] == 1 || each.layout().length(sample) == 0)
                  .as("sample %d is read", sample)
                  .isTrue();
            }
          }
        });
  }

  @Test
  void reads_cost_the_dataset_and_two_part_pages_an_extent_at_most() {
    forEveryCase(
        each -> {
          List<Load> loads = loads(Pulled.byRank(each.plan()));
          long read =
              loads.stream().mapToLong(load -> ExtentCuts.coveringBytes(load.extent())).sum();
          assertThat(read).isLessThanOrEqualTo(each.layout().bytes() + 8190L * loads.size());
          assertThat(loads)
              .hasSizeLessThanOrEqualTo((int) each.inputs().cuts().count() + each.ranks());
        });
  }

  @Test
  void in_later_segments_extents_that_lack_samples_are_read_again_and_no_others() {
    forEveryCase(
        each -> {
          for (List<PlanStep> lane : Pulled.byRank(each.plan())) {
            List<Load> loads = Pulled.loads(lane);
            for (Load load : loads) {
              int[] samples = each.layout().samplesIn(load.extent());
              if (samples.length > 0) {
                assertThat(load.again())
                    .as("%s", load)
                    .isEqualTo(each.inputs().segment() > 0 && lacks(each, samples[0]));
              }
            }
            // Repeats that have a read of their own are read again by what they are.
            assertThat(Pulled.of(Load.class, lane))
                .filteredOn(load -> !loads.contains(load))
                .allMatch(Load::again);
          }
        });
  }

  private static boolean lacks(PlanCase each, long sample) {
    ExtentCuts cuts = each.inputs().cuts();
    long extent = cuts.extentOf(sample);
    for (long i = cuts.firstSample(extent); i < cuts.firstSample(extent + 1); i++) {
      if (!each.inputs().samples().contains(i)) {
        return true;
      }
    }
    return false;
  }

  @Test
  void the_reads_do_not_depend_on_how_ranks_are_grouped_into_nodes() {
    forEveryCase(
        each -> {
          List<PlanStep> reads = reads(each);
          for (int nodes : alikeOn(each)) {
            assertThat(reads).isEqualTo(reads(each.withNodes(nodes)));
          }
        });
  }

  private static List<PlanStep> reads(PlanCase each) {
    List<PlanStep> reads = new ArrayList<>();
    for (Load load : loads(Pulled.byRank(each.plan()))) {
      reads.add(new Load(load.extent(), 0, load.again()));
    }
    return reads;
  }

  private static List<Load> loads(List<List<PlanStep>> lanes) {
    return lanes.stream().flatMap(lane -> Pulled.loads(lane).stream()).toList();
  }
}
