package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Random;
import org.gristway.plan.Layouts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class TierTableTest {

  private static final int SAMPLES = 50;
  private static final int EPOCHS = TierTable.MOST_EPOCHS;

  @Test
  void every_epoch_and_the_note_are_for_themselves() {
    PlanInputs inputs =
        PlanInputs.of(
            Layouts.fixed(SAMPLES, 100),
            1,
            World.of(2),
            new PlanSettings("clairvoyant", 5, 1 << 20, 4096, Tail.SHORT));
    TierTable table = new TierTable(inputs.layout().sampleCount(), new Accesses(inputs, 0, EPOCHS));
    int[][] kept = new int[SAMPLES][EPOCHS];
    Arrays.stream(kept).forEach(each -> Arrays.fill(each, SampleLane.NOT_KEPT));
    int[] notes = new int[SAMPLES];
    Random random = new Random(Seeds.of("TierTableTest"));
    for (int i = 0; i < 20_000; i++) {
      int sample = random.nextInt(SAMPLES);
      if (random.nextInt(4) == 0) {
        notes[sample] = random.nextInt(256);
        table.note(sample, notes[sample]);
      } else {
        int epoch = random.nextInt(EPOCHS);
        kept[sample][epoch] = random.nextInt(3) - 1;
        table.keep(sample, epoch, kept[sample][epoch]);
      }
    }
    for (int sample = 0; sample < SAMPLES; sample++) {
      assertThat(table.note(sample)).isEqualTo(notes[sample]);
      boolean isKept = false;
      for (int epoch = 0; epoch < EPOCHS; epoch++) {
        long digits = table.digits(sample);
        assertThat(TierTable.before(digits, epoch) != 0).isEqualTo(isKept);
        assertThat(TierTable.tier(digits, epoch)).isEqualTo(kept[sample][epoch]);
        isKept |= kept[sample][epoch] != SampleLane.NOT_KEPT;
      }
    }
  }
}
