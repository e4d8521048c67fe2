package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.gristway.Failure.Kind;
import org.gristway.handover.Batch;
import org.gristway.pack.Trees;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Samples that are asked for by index, exactly. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AskedExactlyTest extends AskedSamples {

  @Test
  void requests_get_what_they_name_in_any_order_and_number() {
    Random random = new Random(Seeds.of("exact_requests_get_what_they_name"));
    try (AskedLoader loader = AskedLoader.exact(originals.path(), OPTIONS)) {
      assertThat(loader.size()).isEqualTo(SAMPLES);
      for (int i = 0; i < Thorough.count(60, 2000); i++) {
        long[] request = random.longs(1 + random.nextInt(50), 0, SAMPLES).toArray();
        Received received = ask(loader, List.of(request));
        assertThat(received.places().stream().mapToLong(Received.Place::sample))
            .containsExactly(Arrays.stream(request).boxed().toArray(Long[]::new));
        assertThat(received.repeats()).isZero();
      }
    }
  }

  @Test
  void requests_outside_the_dataset_are_refused_and_change_nothing() {
    try (AskedLoader loader = AskedLoader.exact(originals.path(), OPTIONS)) {
      for (long index : List.of(-1L, (long) SAMPLES, Long.MAX_VALUE, Long.MIN_VALUE)) {
        assertFails(Kind.WRONG_CALL, () -> loader.get(3, index), "index " + index);
      }
      assertFails(Kind.WRONG_CALL, loader::get, "at least one index");
      ask(loader, List.of(new long[] {3, 3, 3}));
      loader.setEpoch(4);
      loader.setEpoch(2);
      ask(loader, List.of(new long[] {3}));
    }
  }

  @Test
  void reports_are_of_the_epoch_that_was_set() {
    try (AskedLoader loader = AskedLoader.exact(originals.path(), OPTIONS)) {
      loader.setEpoch(4);
      Batch batch = loader.get(1, 2, 3);
      assertThat(batch.epoch()).isEqualTo(4);
      batch.close();
      assertThat(loader.report().samples()).isEqualTo(3);
    }
  }

  @Test
  void requests_for_damaged_samples_fail_and_others_do_not() {
    Path path = Trees.write(Trees.read(originals.path()), folder.resolve("damaged"));
    Originals damaged = Originals.of(path);
    long bad = damaged.length(17) == 0 ? 18 : 17;
    damaged.flip(bad, 0);
    // Whatever the options say: whoever asks for a sample does not want another.
    try (AskedLoader loader = AskedLoader.exact(path, OPTIONS.withStrict(false))) {
      for (int i = 0; i < 2; i++) {
        assertFails(
            Kind.DAMAGED,
            () -> loader.get(3, bad, 5),
            damaged.chunk(bad).toString(),
            "'" + damaged.key(bad) + "'");
        Received received = new Received(damaged).add(loader.get(3, 5));
        assertThat(samples(received)).containsExactly(3L, 5L);
      }
    }
  }
}
