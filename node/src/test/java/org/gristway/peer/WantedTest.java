package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.gristway.plan.Caching;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Memory that a sample is put into is not given back before that has ended. */
@Tag("java")
class WantedTest {

  private static final long A_WHILE = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long LONG = TimeUnit.MINUTES.toNanos(1);

  private final Wanted wanted = new Wanted(1, 2, Caching.MEMORY, MemorySegment.NULL);

  @Test
  void who_waits_gets_what_comes() {
    CompletableFuture<Boolean> waiting = CompletableFuture.supplyAsync(() -> wanted.await(LONG));
    assertThat(wanted.begin()).isTrue();
    wanted.end(true);
    assertThat(waiting.join()).isTrue();
  }

  @Test
  void nothing_is_put_there_when_nobody_waits_any_more() {
    assertThat(wanted.await(A_WHILE)).isFalse();
    assertThat(wanted.begin()).isFalse();
  }

  @Test
  void what_has_begun_to_come_is_waited_for() throws Exception {
    assertThat(wanted.begin()).isTrue();
    CompletableFuture<Boolean> waiting = CompletableFuture.supplyAsync(() -> wanted.await(A_WHILE));
    wanted.giveUp(); // which is not for somebody else to say
    assertThatThrownBy(() -> waiting.get(200, TimeUnit.MILLISECONDS))
        .isInstanceOf(TimeoutException.class);
    wanted.end(false);
    assertThat(waiting.get()).isFalse();
  }

  @Test
  void what_will_not_come_is_not_waited_for() {
    CompletableFuture<Boolean> waiting = CompletableFuture.supplyAsync(() -> wanted.await(LONG));
    wanted.giveUp();
    assertThat(waiting.join()).isFalse();
  }

  @Test
  void who_is_interrupted_waits_only_for_what_has_begun_to_come() throws Exception {
    CompletableFuture<Boolean> isInterrupted = new CompletableFuture<>();
    Thread waiting =
        Thread.ofPlatform()
            .start(
                () -> {
                  assertThat(wanted.await(LONG)).isFalse();
                  isInterrupted.complete(Thread.currentThread().isInterrupted());
                });
    waiting.interrupt();
    waiting.join();
    assertThat(isInterrupted.get()).isTrue();
    assertThat(wanted.begin()).isFalse();
  }
}
