package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.gristway.plan.Caching;
import org.gristway.plan.Exchange;
import org.gristway.read.Parcel;
import org.gristway.read.PeerCaches;
import org.gristway.read.Post;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Test;

/** What nodes push to each other, and fetch. */
class MeshTest extends MeshTesting {

  @Test
  void what_a_rank_pushes_arrives_at_any_other() throws Exception {
    connect(6, 3);
    for (int from = 0; from < 6; from++) {
      for (int to = 0; to < 6; to++) {
        if (from != to) {
          push(meshes.get(from / 2).office().rank(from), to, 0, from, 10 + to, 20);
        }
      }
    }
    for (int from = 0; from < 6; from++) {
      for (int to = 0; to < 6; to++) {
        if (from != to) {
          Parcel parcel = meshes.get(to / 2).office().rank(to).await(from, 0, 0);
          assertHas(parcel, from, 10 + to, 20);
        }
      }
    }
  }

  @Test
  void many_parcels_of_any_size_arrive_as_they_were_sent() throws Exception {
    connect(2, 2);
    Random random = new Random(Seeds.of("many_parcels"));
    Post sender = meshes.get(0).office().rank(0);
    Post receiver = meshes.get(1).office().rank(1);
    for (int step = 0; step < 300; step++) {
      long[] samples = random.longs(random.nextInt(40), 0, 100).toArray();
      push(sender, 1, step, samples);
      assertHas(receiver.await(0, 0, step), samples);
      receiver.done(0, step);
    }
    assertThat(meshes.get(1).office().waitingBytes()).isZero();
    assertThat(meshes.get(1).office().mostWaitingBytes()).isLessThan(40 * 2000);
  }

  @Test
  void who_pushes_too_far_ahead_waits_for_the_other_to_come() throws Exception {
    connect(2, 2);
    int room = Exchange.room(WINDOW);
    Post sender = meshes.get(0).office().rank(0);
    for (int step = 0; step < room; step++) {
      push(sender, 1, step, step);
    }
    CompletableFuture<Void> further =
        CompletableFuture.runAsync(
            () -> {
              try {
                push(sender, 1, room, 9);
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
            },
            THREADS);
    assertThatThrownBy(() -> further.get(200, TimeUnit.MILLISECONDS))
        .isInstanceOf(TimeoutException.class);
    meshes.get(1).office().rank(1).done(0, 0);
    further.get();
    assertHas(meshes.get(1).office().rank(1).await(0, 0, room), 9);
  }

  @Test
  void what_a_rank_keeps_is_there_for_those_of_other_nodes() throws Exception {
    kept =
        (rank, sample, tier, target) -> {
          target.asByteBuffer().put(bytes(sample));
          return rank == 1 && tier == Caching.DISK && sample % 3 != 0;
        };
    connect(2, 2);
    PeerCaches caches = meshes.get(0).caches();
    List<CompletableFuture<Void>> asking = new ArrayList<>();
    for (int thread = 0; thread < 8; thread++) {
      asking.add(
          CompletableFuture.runAsync(
              () -> {
                for (long sample = 0; sample < 100; sample++) {
                  byte[] bytes = bytes(sample);
                  byte[] target = new byte[bytes.length];
                  MemorySegment memory = MemorySegment.ofArray(target);
                  assertThat(caches.fetch(1, sample, Caching.MEMORY, memory)).isFalse();
                  boolean isKept = sample % 3 != 0;
                  assertThat(caches.fetch(1, sample, Caching.DISK, memory)).isEqualTo(isKept);
                  if (isKept) {
                    assertThat(target).isEqualTo(bytes);
                  }
                }
              },
              THREADS));
    }
    for (CompletableFuture<Void> each : asking) {
      each.get();
    }
  }
}
