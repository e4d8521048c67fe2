package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.dataset.Dataset;
import org.gristway.read.Admission;
import org.gristway.read.PeerCaches;
import org.gristway.read.PostOffice;
import org.gristway.read.ReadCounter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Damage, and datasets that are gone. */
class RankFeedTroubleTest extends RankFeedTesting {

  @Test
  void a_failure_is_told_to_everyone_who_asks(@TempDir Path other) throws Exception {
    Packed damaged = Packed.in(other);
    damaged.damage();
    try (Dataset opened = Dataset.open(damaged.path());
        RankFeed feed = open(damaged.settings("strict=true"), opened)) {
      for (int attempt = 0; attempt < 3; attempt++) {
        Throwable told =
            catchThrowable(
                () -> {
                  for (long step = 0; step <= LAST; step++) {
                    take(feed, "client", 0, step, 1);
                  }
                });
        assertThat(told).isInstanceOf(Failure.class).hasMessageContaining(".gwc");
        assertThat(((Failure) told).kind()).isEqualTo(Kind.DAMAGED);
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  @Test
  void damage_is_told_and_does_not_change_the_order(@TempDir Path other) throws Exception {
    Packed damaged = Packed.in(other);
    List<List<List<Long>>> sound = damaged.order(damaged.settings(), 0, 1);
    damaged.damage();
    List<String> notices = Collections.synchronizedList(new ArrayList<>());
    int differ = 0;
    try (Dataset opened = Dataset.open(damaged.path());
        RankFeed feed =
            new RankFeed(
                0,
                damaged.settings(),
                opened,
                PostOffice.alone(1, 2),
                PeerCaches.NONE,
                new Admission(1),
                notices::add)) {
      for (long step = 0; step <= LAST; step++) {
        List<Long> given = take(feed, "client", 0, step, 1);
        List<Long> due = sound.getFirst().get((int) step);
        assertThat(given).hasSameSizeAs(due);
        for (int i = 0; i < due.size(); i++) {
          differ += given.get(i).equals(due.get(i)) ? 0 : 1;
        }
      }
    }
    assertThat(differ).isEqualTo(1);
    assertThat(notices).hasSizeBetween(1, 2).allMatch(line -> line.contains("is damaged"));
  }

  @Test
  void a_dataset_that_is_replaced_is_not_begun_anew_with(@TempDir Path other) throws Exception {
    Packed replaced = Packed.in(other);
    List<List<Long>> whole = replaced.order(replaced.settings(), 0, 1).getFirst();
    try (Dataset opened = Dataset.open(replaced.path());
        RankFeed feed = open(replaced.settings(), opened)) {
      assertThat(take(feed, "client", 0, 5, 1)).isEqualTo(whole.get(5));
      Packed.in(other, 1);
      assertThatThrownBy(() -> take(feed, "client", 0, 0, 1))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("was replaced while a run read it");
      Packed.in(other); // the same bytes again, in other files
      assertThat(take(feed, "client", 0, 0, 1)).isEqualTo(whole.getFirst());
    }
  }

  @Test
  void when_it_cannot_begin_anew_the_next_request_tries_again(@TempDir Path other)
      throws Exception {
    Packed moving = Packed.in(other);
    Path elsewhere = other.resolve("elsewhere.gw");
    List<List<Long>> whole = moving.order(moving.settings(), 0, 1).getFirst();
    try (Dataset opened = Dataset.open(moving.path());
        RankFeed feed = open(moving.settings(), opened)) {
      assertThat(take(feed, "client", 0, 5, 1)).isEqualTo(whole.get(5));
      long counted = feed.counters().get(ReadCounter.SAMPLES);
      Files.move(moving.path(), elsewhere);
      for (int attempt = 0; attempt < 3; attempt++) {
        assertThatThrownBy(() -> take(feed, "client", 0, 0, 1))
            .isInstanceOf(Failure.class)
            .hasMessageContaining(moving.path().toString());
        // Nothing is counted twice because of it.
        assertThat(feed.counters().get(ReadCounter.SAMPLES)).isLessThan(counted + 100);
      }
      Files.move(elsewhere, moving.path());
      for (long step = 0; step <= LAST; step++) {
        assertThat(take(feed, "client", 0, step, 1)).isEqualTo(whole.get((int) step));
      }
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }

  /** It is looked for each time that reading begins anew, as it does after a break. */
  @Test
  void a_chunk_that_is_missing_is_told_to_whoever_asks(@TempDir Path other) throws Exception {
    Packed incomplete = Packed.in(other);
    try (Dataset opened = Dataset.open(incomplete.path());
        RankFeed feed = open(incomplete.settings(), opened)) {
      take(feed, "client", 0, 5, 1);
      Files.delete(incomplete.path().resolve("chunk-000001.gwc"));
      assertThatThrownBy(() -> take(feed, "client", 0, 0, 1))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("chunks is missing: chunk-000001.gwc, ");
      assertThatThrownBy(() -> open(incomplete.settings(), opened).close())
          .isInstanceOf(Failure.class)
          .hasMessageContaining("chunks is missing: chunk-000001.gwc, ");
    }
    assertThat(Packed.memoryFiles()).isEqualTo(memoryBefore);
  }
}
