package org.gristway.read;

import static org.gristway.handover.Conversation.check;
import static org.gristway.handover.Conversation.join;
import static org.gristway.handover.Conversation.start;
import static org.gristway.handover.Conversation.together;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.handover.Conversation;
import org.gristway.testing.Thorough;
import org.jetbrains.lincheck.Lincheck;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Lincheck tries the orders in which lanes, reading threads and whoever closes can meet over
 * frames. All of it waits, so whole conversations are run: Lincheck tells if all wait for each
 * other, and the checks on the way that the budget is kept.
 */
@Tag("java")
class FrameInterleavingsTest {

  private static final Patience ONCE = new Patience(Path.of(""), Duration.ZERO, line -> {});

  private static final int FRAME = 4096;
  private static final Extent PAGES = new Extent(0, 0, FRAME);

  @Test
  void everyone_who_waits_sees_a_frame_loaded() {
    Lincheck.runConcurrentTest(
        Thorough.count(15, 1500),
        () -> {
          Frame frame = new Frame();
          Conversation.Part waiter = () -> check(frame.await().failure() == null);
          Thread one = start(waiter);
          Thread other = start(waiter);
          frame.claim(PAGES, MemorySegment.NULL);
          frame.loaded(null);
          join(one);
          join(other);
        });
  }

  @Test
  void a_released_frame_is_used_again() {
    Lincheck.runConcurrentTest(
        Thorough.count(15, 1500),
        () -> {
          Frame frame = new Frame();
          Exception failure = new Exception();
          together(
              () -> {
                frame.claim(PAGES, MemorySegment.NULL);
                Thread loader = start(() -> frame.loaded(failure));
                check(frame.isClaimed());
                check(frame.await().failure() == failure);
                frame.release();
                check(!frame.isClaimed() && frame.held() == null);
                join(loader);
                frame.claim(PAGES, MemorySegment.NULL);
                frame.loaded(null);
              },
              () -> check(frame.await().pages().equals(PAGES)));
          check(frame.held() != null);
        });
  }

  @Test
  void lanes_that_share_a_budget_never_go_beyond_it() {
    MemoryBudget budget = new MemoryBudget(2 * FRAME);
    try (FramePool pool = new FramePool(2, FRAME, budget)) {
      Lincheck.runConcurrentTest(
          Thorough.count(15, 1500),
          () -> {
            together(() -> useTwice(pool, budget, 0), () -> useTwice(pool, budget, 1));
            check(budget.resident() == 0);
          });
    }
  }

  private static void useTwice(FramePool pool, MemoryBudget budget, int frame)
      throws InterruptedException {
    for (int i = 0; i < 2; i++) {
      pool.claim(frame, PAGES);
      check(budget.resident() >= FRAME && budget.resident() <= 2 * FRAME);
      Thread loader = start(() -> pool.frame(frame).loaded(null));
      check(pool.frame(frame).await().pages().equals(PAGES));
      check(pool.release(frame) == FRAME);
      check(budget.resident() >= 0 && budget.resident() <= FRAME);
      join(loader);
    }
  }

  @Test
  void reads_of_two_lanes_arrive_and_closing_ends_the_readers() {
    Lincheck.runConcurrentTest(
        Thorough.count(15, 1500),
        () -> {
          AtomicInteger reads = new AtomicInteger();
          LoadQueue queue = new LoadQueue(2, 1, Threads.PLATFORM, ONCE);
          ChunkSource source = (_, _) -> reads.incrementAndGet();
          Frame one = new Frame();
          Frame other = new Frame();
          together(
              () -> loadAndAwait(queue, source, 0, one),
              () -> loadAndAwait(queue, source, 1, other));
          check(reads.get() == 2);
          queue.close();
        });
  }

  private static void loadAndAwait(LoadQueue queue, ChunkSource source, int lane, Frame frame)
      throws InterruptedException {
    frame.claim(PAGES, MemorySegment.NULL);
    queue.submit(lane, new LoadQueue.Load(source, PAGES, MemorySegment.NULL, frame::loaded));
    frame.await();
  }

  @Test
  void closing_returns_whatever_still_waits_to_be_read() {
    Lincheck.runConcurrentTest(
        Thorough.count(15, 1500),
        () -> {
          AtomicInteger reads = new AtomicInteger();
          LoadQueue queue = new LoadQueue(1, 1, Threads.PLATFORM, ONCE);
          ChunkSource source = (_, _) -> reads.incrementAndGet();
          together(
              () -> {
                for (int i = 0; i < 2; i++) {
                  queue.submit(0, new LoadQueue.Load(source, PAGES, MemorySegment.NULL, _ -> {}));
                }
              },
              queue::close);
          check(reads.get() <= 2);
        });
  }
}
