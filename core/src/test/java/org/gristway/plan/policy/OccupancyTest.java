package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Random;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class OccupancyTest {

  private static final long SEED = Seeds.of("OccupancyTest");

  @Test
  void room_is_taken_as_long_as_every_slot_has_it() {
    for (int i = 0; i < 200; i++) {
      Random random = new Random(SEED + i);
      int slots = 1 + random.nextInt(i < 100 ? 8 : 200);
      long capacity = random.nextInt(1000);
      Occupancy occupancy = new Occupancy(slots, capacity);
      long[] taken = new long[slots];
      for (int take = 0; take < 300; take++) {
        int to = take * slots / 300;
        int from = random.nextInt(to + 1);
        long bytes = random.nextInt(60);
        boolean fits = Arrays.stream(taken, from, to + 1).max().orElse(0) + bytes <= capacity;
        assertThat(occupancy.take(from, to, bytes)).as("case %d, take %d", i, take).isEqualTo(fits);
        if (fits) {
          Arrays.setAll(taken, slot -> taken[slot] + (slot >= from && slot <= to ? bytes : 0));
        }
      }
    }
  }
}
