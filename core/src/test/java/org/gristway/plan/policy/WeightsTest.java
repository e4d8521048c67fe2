package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class WeightsTest {

  @Test
  void every_number_finds_the_index_whose_stretch_holds_it() {
    Random random = new Random(Seeds.of("every_number_finds_the_index"));
    for (int i = 0; i < Thorough.count(200, 5000); i++) {
      int[] model = new int[1 + random.nextInt(70)];
      Weights weights = new Weights(model.length);
      for (int change = random.nextInt(200); change >= 0; change--) {
        int index = random.nextInt(model.length);
        int weight = random.nextInt(10) - Math.min(model[index], random.nextInt(10));
        model[index] += weight;
        weights.add(index, weight);
      }
      int at = 0;
      for (int index = 0; index < model.length; index++) {
        for (int end = at + model[index]; at < end; at++) {
          assertThat(weights.find(at)).as("%d", at).isEqualTo(index);
        }
      }
    }
  }
}
