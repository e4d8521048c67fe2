package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.gristway.Failure;
import org.gristway.chunk.Extent;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Tag("java")
@Timeout(value = 30, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FramePoolTest {

  private static final int FRAME = 8192;

  private static Extent pages(long length) {
    return new Extent(3, 4096, length);
  }

  @Test
  void frames_have_memory_of_their_own() {
    MemoryBudget budget = new MemoryBudget(3 * FRAME);
    try (FramePool pool = new FramePool(3, FRAME, budget)) {
      for (int i = 0; i < 3; i++) {
        MemorySegment memory = pool.claim(i, pages(FRAME - 100));
        assertThat(memory.byteSize()).isEqualTo(FRAME);
        assertThat(memory.address() % 4096).isZero();
        memory.fill((byte) i);
        assertThat(budget.resident()).isEqualTo((i + 1L) * FRAME);
      }
      for (int i = 0; i < 3; i++) {
        pool.frame(i).loaded(null);
        Frame.Held held = pool.frame(i).held();
        assertThat(held.pages()).isEqualTo(pages(FRAME - 100));
        assertThat(held.memory().toArray(ValueLayout.JAVA_BYTE)).containsOnly((byte) i);
      }
    }
  }

  @Test
  void an_extent_larger_than_a_frame_counts_with_all_its_pages_while_it_is_resident() {
    MemoryBudget budget = new MemoryBudget(5 * FRAME);
    try (FramePool pool = new FramePool(2, FRAME, budget)) {
      MemorySegment large = pool.claim(0, pages(3 * FRAME + 1));
      assertThat(large.byteSize()).isEqualTo(3 * FRAME + 4096);
      assertThat(budget.resident()).isEqualTo(3 * FRAME + 4096);
      pool.claim(1, pages(1));
      pool.frame(0).loaded(null);
      assertThat(pool.release(0)).isEqualTo(3 * FRAME + 4096);
      assertThat(budget.resident()).isEqualTo(FRAME);
      assertThatThrownBy(() -> large.get(ValueLayout.JAVA_BYTE, 0))
          .isInstanceOf(IllegalStateException.class);
      assertThat(pool.claim(0, pages(FRAME)).byteSize()).isEqualTo(FRAME);
    }
  }

  @Test
  void more_than_the_budget_is_a_bug() {
    MemoryBudget budget = new MemoryBudget(2 * FRAME);
    try (FramePool pool = new FramePool(2, FRAME, budget)) {
      pool.claim(0, pages(FRAME));
      assertThatThrownBy(() -> pool.claim(1, pages(FRAME + 1)))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("budget of " + 2 * FRAME);
    }
  }

  @Test
  void a_frame_out_of_turn_is_a_bug() {
    Frame frame = new Frame();
    assertIsBug(() -> frame.loaded(null));
    assertIsBug(frame::release);
    frame.claim(pages(1), MemorySegment.NULL);
    assertIsBug(() -> frame.claim(pages(1), MemorySegment.NULL));
    assertIsBug(frame::release);
    frame.loaded(null);
    assertIsBug(() -> frame.loaded(null));
    assertIsBug(() -> frame.claim(pages(1), MemorySegment.NULL));
    frame.release();
    assertIsBug(frame::release);
  }

  private static void assertIsBug(Runnable call) {
    assertThatThrownBy(call::run).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void all_who_wait_are_told_and_told_why_nothing_came() throws Exception {
    Frame frame = new Frame();
    Failure why = Failure.damaged("worn out");
    List<FutureTask<Frame.Held>> waiters = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      FutureTask<Frame.Held> waiter = new FutureTask<>(frame::await);
      Thread thread = Thread.ofPlatform().daemon().start(waiter);
      while (thread.getState() != Thread.State.WAITING) {
        TimeUnit.MILLISECONDS.sleep(1);
      }
      waiters.add(waiter);
    }
    frame.claim(pages(7), MemorySegment.NULL);
    frame.loaded(why);
    for (FutureTask<Frame.Held> waiter : waiters) {
      assertThat(waiter.get().failure()).isSameAs(why);
      assertThat(waiter.get().pages()).isEqualTo(pages(7));
    }
  }
}
