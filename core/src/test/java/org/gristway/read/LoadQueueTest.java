package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.gristway.Failure;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoadQueueTest {

  private final List<Long> begun = Collections.synchronizedList(new ArrayList<>());
  private final CountDownLatch gate = new CountDownLatch(1);
  private final CountDownLatch inside = new CountDownLatch(1);
  private final List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
  private final AtomicInteger arrived = new AtomicInteger();

  /** Each read is known by its offset. */
  private LoadQueue.Load load(long offset) {
    return load(this::read, offset);
  }

  private LoadQueue.Load load(ChunkSource source, long offset) {
    return new LoadQueue.Load(
        source,
        new Extent(0, offset, 1),
        MemorySegment.NULL,
        failure -> {
          if (failure != null) {
            failures.add(failure);
          }
          arrived.incrementAndGet();
        });
  }

  /** A storage that answers nothing before the gate is open. */
  private void read(Extent extent, MemorySegment memory) {
    begun.add(extent.offset());
    inside.countDown();
    try {
      gate.await();
    } catch (InterruptedException unexpected) {
      throw new AssertionError(unexpected);
    }
  }

  private void awaitArrivals(int count) throws InterruptedException {
    while (arrived.get() < count) {
      TimeUnit.MILLISECONDS.sleep(1);
    }
  }

  @Test
  void lanes_take_turns_and_each_keeps_its_order() throws InterruptedException {
    try (LoadQueue queue = new LoadQueue(3, 1, Threads.PLATFORM)) {
      queue.submit(0, load(0));
      inside.await();
      for (int lane = 0; lane < 3; lane++) {
        for (int i = 1; i <= 3 - lane; i++) {
          queue.submit(lane, load(10 * lane + i));
        }
      }
      gate.countDown();
      awaitArrivals(7);
      assertThat(begun).containsExactly(0L, 11L, 21L, 1L, 12L, 2L, 3L);
    }
  }

  @Test
  void as_many_reads_run_at_once_as_there_are_threads() throws InterruptedException {
    try (LoadQueue queue = new LoadQueue(1, 4, Threads.PLATFORM)) {
      for (int i = 0; i < 9; i++) {
        queue.submit(0, load(i));
      }
      while (begun.size() < 4) {
        TimeUnit.MILLISECONDS.sleep(1);
      }
      TimeUnit.MILLISECONDS.sleep(20);
      assertThat(begun).containsExactlyInAnyOrder(0L, 1L, 2L, 3L);
      gate.countDown();
      awaitArrivals(9);
    }
  }

  @Test
  void a_failed_read_is_told_and_the_next_one_goes_on() throws InterruptedException {
    Failure damaged = Failure.damaged("worn out");
    Error bug = new AssertionError();
    ChunkSource worn =
        (extent, _) -> {
          if (extent.offset() == 1) {
            throw damaged;
          } else if (extent.offset() == 2) {
            throw bug;
          }
        };
    try (LoadQueue queue = new LoadQueue(1, 1, Threads.PLATFORM)) {
      for (int i = 0; i < 4; i++) {
        queue.submit(0, load(worn, i));
      }
      awaitArrivals(4);
    }
    assertThat(failures).containsExactly(damaged, bug);
  }

  @Test
  void closing_waits_for_reads_under_way_and_forgets_the_others() throws InterruptedException {
    LoadQueue queue = new LoadQueue(1, 1, Threads.PLATFORM);
    queue.submit(0, load(0));
    queue.submit(0, load(1));
    inside.await();
    Thread closing = Thread.ofPlatform().start(queue::close);
    TimeUnit.MILLISECONDS.sleep(20);
    assertThat(closing.isAlive()).isTrue();
    closing.interrupt(); // a read under way cannot be left: its memory is still written to
    TimeUnit.MILLISECONDS.sleep(5);
    assertThat(closing.isAlive()).isTrue();
    gate.countDown();
    closing.join();
    assertThat(begun).containsExactly(0L);
    assertThat(arrived.get()).isEqualTo(1);
  }
}
