package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Random;
import org.gristway.dataset.Dataset;
import org.gristway.node.Packed;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A peer that says anything: it is understood, or the connection ends with a reason. */
@Tag("java")
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PeerLinkFuzzTest {

  @TempDir Path folder;

  @Test
  void whatever_a_peer_says_is_understood_or_ends_the_connection() throws Exception {
    Random random = new Random(Seeds.of("whatever_a_peer_says"));
    int count = Thorough.count(1_000, 50_000);
    int understood = 0;
    int refused = 0;
    try (Dataset dataset = Dataset.open(Packed.in(folder).path());
        Hearing hearing = new Hearing(dataset.snapshot(), folder)) {
      Messages messages = new Messages(dataset.snapshot(), random);
      for (int i = 0; i < count; i++) {
        byte[] valid = messages.some(Hearing.BATCH, Hearing.ROOM, Hearing.ASKED);
        Hearing.Outcome outcome = hearing.hear(messages.mutated(valid));
        understood += outcome.understood();
        refused += outcome.why() == null || outcome.why() instanceof EOFException ? 0 : 1;
      }
    }
    // Else nothing gets past the first message, or nothing is wrong with it.
    assertThat(understood).isGreaterThan(count);
    assertThat(refused).isGreaterThan(count / 20);
  }

  @Test
  void a_peer_that_wants_more_and_more_and_takes_nothing_is_refused() throws Exception {
    try (Dataset dataset = Dataset.open(Packed.in(folder).path());
        Hearing hearing = new Hearing(dataset.snapshot(), folder)) {
      long longest = 0;
      for (long sample = 1; sample < dataset.size(); sample++) {
        longest =
            dataset.snapshot().length(sample) > dataset.snapshot().length(longest)
                ? sample
                : longest;
      }
      ByteBuffer said = ByteBuffer.allocate(25 * 20_000).order(java.nio.ByteOrder.LITTLE_ENDIAN);
      while (said.hasRemaining()) {
        said.put((byte) 6).putLong(1).putInt(0).putLong(longest).putInt(0);
      }
      IOException why = hearing.hear(said.array()).why();
      assertThat(why).hasMessageContaining("it wants more than 16384 samples at once");
    }
  }

  @Test
  void whoever_greets_with_anything_is_understood_or_refused() throws Exception {
    Random random = new Random(Seeds.of("whoever_greets_with_anything"));
    int count = Thorough.count(500, 20_000);
    int accepted = 0;
    try (Greeted greeted = new Greeted()) {
      for (int i = 0; i < count; i++) {
        accepted += greeted.greet(Greeted.mutated(random)) ? 1 : 0;
      }
    }
    assertThat(accepted).isBetween(count / 20, count - count / 20);
  }
}
