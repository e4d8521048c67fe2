package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.gristway.Failure;
import org.gristway.plan.Caching;
import org.gristway.read.Post;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** What becomes of a job when a node is lost, hangs, gives up or leaves. */
class MeshLossTest extends MeshTesting {

  @Test
  void a_node_that_breaks_off_ends_the_job_for_all_others() throws Exception {
    Mesh first = mesh(3, 3, 0, SECRET, "plan=1\n");
    Mesh second = mesh(3, 3, 1, SECRET, "plan=1\n");
    List<InetSocketAddress> addresses = List.of(first.address(), second.address(), first.address());
    List<CompletableFuture<Void>> joins = new ArrayList<>();
    for (Mesh mesh : List.of(first, second)) {
      joins.add(
          CompletableFuture.runAsync(
              () -> {
                try {
                  mesh.join(addresses, 10);
                } catch (InterruptedException e) {
                  throw new IllegalStateException(e);
                }
              },
              THREADS));
    }
    Socket toFirst = new Socket();
    Socket toSecond = new Socket();
    toFirst.connect(first.address());
    toSecond.connect(second.address());
    new Greeting(SECRET, 2, "plan=1\n").connect(toFirst, 0, () -> {});
    new Greeting(SECRET, 2, "plan=1\n").connect(toSecond, 1, () -> {});
    for (CompletableFuture<Void> join : joins) {
      join.get();
    }
    // The second cannot know by itself: its connection stays.
    toFirst.close();
    for (Mesh mesh : List.of(second, first)) {
      int own = mesh == first ? 0 : 1;
      assertThatThrownBy(() -> mesh.office().rank(own).await(2, 0, 0))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("node 2")
          .hasMessageContaining("is lost");
    }
    toSecond.close();
  }

  @Test
  void a_rank_that_cannot_go_on_ends_the_job_for_all_others() throws Exception {
    connect(2, 2);
    meshes.get(0).office().giveUp(Failure.damaged("sample 'a' is damaged"));
    assertThatThrownBy(() -> meshes.get(1).office().rank(1).await(0, 0, 0))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("node 0")
        .hasMessageContaining("sample 'a' is damaged");
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void a_node_that_is_silent_is_lost_within_ten_seconds() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    long start = System.nanoTime();
    try (Socket silent = impostor(mesh)) {
      assertThatThrownBy(() -> mesh.office().rank(0).await(1, 0, 0))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("node 1")
          .hasMessageContaining("nothing was heard of it");
      assertThat(silent.isClosed()).isFalse();
    }
    assertThat(System.nanoTime() - start).isBetween(5_000_000_000L, 10_000_000_000L);
  }

  @Test
  void who_waits_for_a_sample_of_a_node_that_breaks_off_goes_without_it() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    CompletableFuture<Boolean> waiting;
    try (Socket mute = impostor(mesh)) {
      byte[] target = new byte[(int) dataset.snapshot().length(3)];
      waiting =
          CompletableFuture.supplyAsync(
              () -> mesh.caches().fetch(1, 3, Caching.MEMORY, MemorySegment.ofArray(target)),
              THREADS);
      mute.getInputStream().readNBytes(25); // the question, after which nothing is said
    }
    assertThat(waiting.get(3, TimeUnit.SECONDS)).isFalse();
    assertThat(mesh.caches().fetch(1, 3, Caching.MEMORY, MemorySegment.NULL)).isFalse();
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void who_waits_for_the_rest_of_a_sample_is_not_kept_by_a_node_that_hangs() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    try (Socket slow = impostor(mesh)) {
      byte[] target = new byte[(int) dataset.snapshot().length(3)];
      CompletableFuture<Boolean> waiting =
          CompletableFuture.supplyAsync(
              () -> mesh.caches().fetch(1, 3, Caching.MEMORY, MemorySegment.ofArray(target)),
              THREADS);
      byte[] asked = slow.getInputStream().readNBytes(25);
      ByteBuffer answer = ByteBuffer.allocate(18).order(ByteOrder.LITTLE_ENDIAN).put((byte) 7);
      answer.put(asked, 1, 8).putLong(target.length).put((byte) 1); // of which a byte comes
      slow.getOutputStream().write(answer.array());
      assertThat(waiting.get(10, TimeUnit.SECONDS)).isFalse();
    }
    assertThat(losses).singleElement().asString().contains("nothing was heard of it");
  }

  @Test
  void a_node_that_has_left_is_missed_only_by_who_waits_for_it() throws Exception {
    connect(2, 2);
    push(meshes.get(0).office().rank(0), 1, 0, 1, 2);
    Thread leaving = Thread.ofVirtual().start(meshes.get(0)::close);
    Post other = meshes.get(1).office().rank(1);
    assertHas(other.await(0, 0, 0), 1, 2);
    assertThatThrownBy(() -> other.await(0, 0, 1))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("node 0")
        .hasMessageContaining("has left the job");
    push(other, 0, 0, 7); // which nobody needs
    leaving.join();
    assertThat(losses).isEmpty();
  }
}
