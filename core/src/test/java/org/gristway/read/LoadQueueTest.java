package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.gristway.Failure;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.os.NativeFile;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoadQueueTest {

  private static final Duration LONG = Duration.ofHours(1);

  private final List<String> notices = Collections.synchronizedList(new ArrayList<>());
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
    try (LoadQueue queue = new LoadQueue(3, 1, Threads.PLATFORM, patience(LONG))) {
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
    try (LoadQueue queue = new LoadQueue(1, 4, Threads.PLATFORM, patience(LONG))) {
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
    try (LoadQueue queue = new LoadQueue(1, 1, Threads.PLATFORM, patience(LONG))) {
      for (int i = 0; i < 4; i++) {
        queue.submit(0, load(worn, i));
      }
      awaitArrivals(4);
    }
    assertThat(failures).containsExactly(damaged, bug);
  }

  @Test
  void closing_waits_for_reads_under_way_and_forgets_the_others() throws InterruptedException {
    LoadQueue queue = new LoadQueue(1, 1, Threads.PLATFORM, patience(LONG));
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

  private Patience patience(Duration limit) {
    return new Patience(Path.of("data.gw"), limit, notices::add);
  }

  /** A read that the system fails with EIO: there is nothing at the beginning of our memory. */
  private static void failOfTheStorage() {
    try (NativeFile file = NativeFile.openToRead(Path.of("/proc/self/mem"));
        Arena arena = Arena.ofConfined()) {
      file.read(arena.allocate(1), 1, 0);
    } catch (IOException failed) {
      throw Failure.io("read chunk-000003.gwc", failed);
    }
    throw new AssertionError("that could be read");
  }

  /** A storage that fails at the offset 1, so many times. */
  private ChunkSource failing(int times) {
    AtomicInteger left = new AtomicInteger(times);
    return (extent, _) -> {
      begun.add(extent.offset());
      if (extent.offset() == 1 && left.getAndDecrement() > 0) {
        failOfTheStorage();
      }
    };
  }

  @Test
  void an_error_of_the_device_is_tried_again_and_holds_up_nothing_else()
      throws InterruptedException {
    ChunkSource source = failing(4);
    try (LoadQueue queue = new LoadQueue(1, 1, Threads.PLATFORM, patience(LONG))) {
      for (int i = 1; i <= 20; i++) {
        queue.submit(0, load(source, i));
      }
      awaitArrivals(20);
    }
    assertThat(failures).isEmpty();
    assertThat(begun.stream().filter(offset -> offset == 1)).hasSize(5);
    // The only thread has read others before it tried for the last time.
    assertThat(begun.indexOf(20L)).isLessThan(begun.lastIndexOf(1L));
    assertThat(notices).hasSize(1);
    assertThat(notices.getFirst())
        .contains("cannot read chunk-000003.gwc: Input/output error", "tried again", "3600 s");
  }

  @Test
  void an_error_of_the_device_that_stays_is_given_up_with_what_to_do() throws InterruptedException {
    long start = System.nanoTime();
    Duration limit = Duration.ofMillis(300);
    try (LoadQueue queue = new LoadQueue(1, 1, Threads.PLATFORM, patience(limit))) {
      queue.submit(0, load(failing(Integer.MAX_VALUE), 1));
      awaitArrivals(1);
    }
    assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(limit.toNanos());
    assertThat(begun.size()).isGreaterThan(2);
    assertThat(failures).hasSize(1);
    Failure failure = (Failure) failures.getFirst();
    assertThat(failure.kind()).isEqualTo(Failure.Kind.ENVIRONMENT);
    assertThat(failure)
        .hasMessageContainingAll(
            "Input/output error", "the disk or the mount", "'gristway verify data.gw'");
  }

  @Test
  void what_is_no_error_of_the_device_is_not_tried_again() throws InterruptedException {
    ChunkSource missing =
        (_, _) -> {
          begun.add(0L);
          try {
            NativeFile.openToRead(Path.of("/nosuch")).close();
          } catch (IOException failed) {
            throw Failure.io("open /nosuch", failed);
          }
        };
    try (LoadQueue queue = new LoadQueue(1, 1, Threads.PLATFORM, patience(LONG))) {
      queue.submit(0, load(missing, 1));
      awaitArrivals(1);
    }
    assertThat(begun).hasSize(1);
    assertThat(failures).hasSize(1);
    assertThat(notices).isEmpty();
  }

  @Test
  void the_end_of_a_run_does_not_wait_for_further_tries() throws InterruptedException {
    Patience patience = patience(LONG);
    try (LoadQueue queue = new LoadQueue(1, 2, Threads.PLATFORM, patience)) {
      ChunkSource source = failing(Integer.MAX_VALUE);
      queue.submit(0, load(source, 1));
      Thread looking =
          Thread.ofPlatform()
              .start(
                  () -> {
                    try {
                      patience.fill(source, new Extent(0, 1, 1), MemorySegment.NULL);
                    } catch (Failure expected) {
                      failures.add(expected);
                    }
                  });
      while (begun.size() < 12) { // by now the pauses are long
        TimeUnit.MILLISECONDS.sleep(1);
      }
      patience.end();
      queue.tryOnce();
      looking.join();
      awaitArrivals(1);
    }
    assertThat(failures).hasSize(2);
  }
}
