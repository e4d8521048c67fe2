package org.gristway.spool;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class ReorderingTest {

  @TempDir Path folder;

  @Test
  void pairs_come_out_in_the_order_of_their_positions() throws Exception {
    for (long count : new long[] {0, 1, 1_000, Thorough.count(2_200_000, 5_000_000)}) {
      try (Reordering reordering = new Reordering(folder.resolve("spool"), count)) {
        long position = 0;
        for (long i = 0; i < count; i++) {
          position = (position + 1_000_003) % count; // a prime: every position comes once
          reordering.put(position, ~position, position << 40);
        }
        Reordering.Cursor cursor = reordering.inOrder();
        for (long i = 0; i < count; i++) {
          assertThat(cursor.next()).isTrue();
          if (cursor.first() != ~i || cursor.second() != i << 40) {
            assertThat(cursor.first()).isEqualTo(~i);
            assertThat(cursor.second()).isEqualTo(i << 40);
          }
        }
        assertThat(cursor.next()).isFalse();
      }
    }
    assertThat(folder).isEmptyDirectory();
  }
}
