package org.gristway.handover;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.gristway.Failure;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Tag("java")
@Timeout(value = 30, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AreaQueueTest {

  /** A call in a thread of its own that has got as far as to wait. */
  private static <T> FutureTask<T> waiting(Callable<T> call) throws InterruptedException {
    FutureTask<T> task = new FutureTask<>(call);
    Thread thread = Thread.ofPlatform().daemon().start(task);
    while (thread.getState() != Thread.State.WAITING) {
      assertThat(task.isDone()).isFalse();
      TimeUnit.MILLISECONDS.sleep(1);
    }
    return task;
  }

  @Test
  void batches_are_taken_in_the_order_of_publication() throws Exception {
    AreaQueue queue = new AreaQueue(3);
    int first = queue.claim();
    int second = queue.claim();
    int third = queue.claim();
    assertThat(List.of(first, second, third)).containsExactlyInAnyOrder(0, 1, 2);
    queue.publish(second);
    queue.publish(first);
    queue.publish(third);
    assertThat(List.of(queue.take(), queue.take(), queue.take()))
        .containsExactly(second, first, third);
  }

  @Test
  void claiming_waits_until_an_area_is_released() throws Exception {
    AreaQueue queue = new AreaQueue(1);
    assertThat(queue.hasFree()).isTrue();
    queue.publish(queue.claim());
    assertThat(queue.hasFree()).isFalse();
    FutureTask<Integer> claim = waiting(queue::claim);
    int area = queue.take();
    assertThat(claim.isDone()).isFalse();
    queue.release(area);
    assertThat(claim.get()).isEqualTo(area);
  }

  @Test
  void claiming_waits_until_an_area_is_abandoned() throws Exception {
    AreaQueue queue = new AreaQueue(1);
    int area = queue.claim();
    FutureTask<Integer> claim = waiting(queue::claim);
    queue.abandon(area);
    assertThat(claim.get()).isEqualTo(area);
    assertThat(queue.hasFree()).isFalse();
  }

  @Test
  void taking_waits_until_a_batch_is_published() throws Exception {
    AreaQueue queue = new AreaQueue(2);
    FutureTask<Integer> take = waiting(queue::take);
    int area = queue.claim();
    assertThat(take.isDone()).isFalse();
    queue.publish(area);
    assertThat(take.get()).isEqualTo(area);
  }

  @Test
  void taking_with_every_area_in_use_does_not_wait_for_ever() throws Exception {
    AreaQueue queue = new AreaQueue(2);
    queue.publish(queue.claim());
    queue.publish(queue.claim());
    int first = queue.take();
    queue.take();
    assertThat(queue.take()).isEqualTo(AreaQueue.ALL_TAKEN);
    queue.release(first);
    queue.publish(queue.claim());
    assertThat(queue.take()).isEqualTo(first);
  }

  @Test
  void the_end_wakes_whoever_claims() throws Exception {
    AreaQueue queue = new AreaQueue(1);
    queue.claim();
    FutureTask<Integer> claim = waiting(queue::claim);
    queue.end(null);
    assertThat(claim.get()).isEqualTo(AreaQueue.NONE);
  }

  @Test
  void the_end_wakes_whoever_takes() throws Exception {
    AreaQueue queue = new AreaQueue(1);
    FutureTask<Integer> take = waiting(queue::take);
    queue.end(null);
    assertThat(take.get()).isEqualTo(AreaQueue.NONE);
  }

  @Test
  void what_is_ready_at_the_end_is_still_taken_and_nothing_more_claimed() throws Exception {
    AreaQueue queue = new AreaQueue(3);
    int ready = queue.claim();
    int late = queue.claim();
    queue.publish(ready);
    queue.end(null);
    assertThat(queue.claim()).isEqualTo(AreaQueue.NONE);
    queue.publish(late);
    assertThat(queue.take()).isEqualTo(ready);
    assertThat(queue.take()).isEqualTo(late);
    assertThat(queue.take()).isEqualTo(AreaQueue.NONE);
  }

  @Test
  void the_first_failure_ends_it_for_every_trainer_after_what_is_ready() throws Exception {
    AreaQueue queue = new AreaQueue(2);
    queue.publish(queue.claim());
    Failure why = Failure.damaged("the disk is on fire");
    queue.end(why);
    queue.end(null);
    queue.end(Failure.damaged("another"));
    queue.take();
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(queue::take).isSameAs(why);
    }
  }

  @Test
  void an_error_ends_it_as_what_it_is() {
    AreaQueue queue = new AreaQueue(1);
    Error bug = new StackOverflowError();
    queue.end(bug);
    assertThatThrownBy(queue::take).isSameAs(bug);
    AreaQueue other = new AreaQueue(1);
    other.end(new Exception("checked"));
    assertThatThrownBy(other::take).hasRootCauseMessage("checked");
  }

  /** Numbers go through areas that several builders and trainers share. */
  @Test
  void nothing_is_lost_or_mixed_up_between_many_threads() throws Exception {
    Random random = new Random(Seeds.of("nothing_is_lost_or_mixed_up_between_many_threads"));
    for (int i = 0; i < Thorough.count(6, 200); i++) {
      new Traffic(1 + random.nextInt(4), 1 + random.nextInt(3), random.nextLong()).run();
    }
  }

  private static final class Traffic {
    private static final int NUMBERS = 3000;

    private final AreaQueue queue;
    private final int builders;
    private final long seed;
    private final AtomicIntegerArray inHand;
    private final int[] content;
    private final List<Integer> received = Collections.synchronizedList(new ArrayList<>());

    Traffic(int areas, int builders, long seed) {
      this.queue = new AreaQueue(areas);
      this.builders = builders;
      this.seed = seed;
      this.inHand = new AtomicIntegerArray(areas);
      this.content = new int[areas];
    }

    private void grab(int area) {
      assertThat(inHand.getAndIncrement(area)).isZero();
    }

    private void leave(int area) {
      inHand.decrementAndGet(area);
    }

    private Void build(int builder) throws InterruptedException {
      Random random = new Random(seed + builder);
      for (int number = builder; number < NUMBERS; ) {
        int area = queue.claim();
        grab(area);
        if (random.nextInt(8) == 0) {
          leave(area);
          queue.abandon(area);
        } else {
          content[area] = number;
          number += builders;
          leave(area);
          queue.publish(area);
        }
      }
      return null;
    }

    private Void train() throws InterruptedException {
      for (int area = queue.take(); area != AreaQueue.NONE; area = queue.take()) {
        grab(area);
        received.add(content[area]);
        leave(area);
        queue.release(area);
      }
      return null;
    }

    void run() throws Exception {
      List<FutureTask<Void>> building = new ArrayList<>();
      for (int builder = 0; builder < builders; builder++) {
        int each = builder;
        building.add(start(() -> build(each)));
      }
      FutureTask<Void> training = start(this::train);
      for (FutureTask<Void> task : building) {
        task.get();
      }
      queue.end(null);
      training.get();
      assertThat(received).hasSize(NUMBERS).doesNotHaveDuplicates();
      for (int builder = 0; builder < builders; builder++) {
        int each = builder;
        assertThat(received.stream().filter(number -> number % builders == each)).isSorted();
      }
    }

    private static FutureTask<Void> start(Callable<Void> call) {
      FutureTask<Void> task = new FutureTask<>(call);
      Thread.ofPlatform().daemon().start(task);
      return task;
    }
  }
}
