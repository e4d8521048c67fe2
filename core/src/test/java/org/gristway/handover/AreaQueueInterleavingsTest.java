package org.gristway.handover;

import static org.gristway.handover.Conversation.check;
import static org.gristway.handover.Conversation.together;

import java.util.ArrayDeque;
import org.gristway.testing.Thorough;
import org.jetbrains.lincheck.Lincheck;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Lincheck tries the orders in which threads can meet in an {@link AreaQueue}.
 *
 * <p>Two kinds of check, since {@code claim} and {@code take} wait. Where they cannot have to,
 * because the queue begins with more ready and free areas than a scenario uses, every result must
 * be one that some order of the calls one after the other gives: the queue is linearizable. Where
 * they have to, with one area or two, whole conversations of threads are run, and Lincheck tells if
 * all wait for each other.
 */
@Tag("java")
class AreaQueueInterleavingsTest {

  private static final int THREADS = 3;
  private static final int CALLS = 2; // of each thread
  private static final int ENOUGH = THREADS * CALLS;

  /** Batches as numbers; an area that two had at once would lose one. */
  public static class Numbers {
    private final AreaQueue queue = new AreaQueue(2 * ENOUGH);
    private final int[] content = new int[2 * ENOUGH];

    public Numbers() throws InterruptedException {
      for (int i = 1; i <= ENOUGH; i++) {
        publish(-i);
      }
    }

    @Operation
    public boolean publish(int number) throws InterruptedException {
      int area = queue.claim();
      if (area == AreaQueue.NONE) {
        return false;
      }
      content[area] = number;
      queue.publish(area);
      return true;
    }

    @Operation
    public boolean abandon() throws InterruptedException {
      int area = queue.claim();
      if (area == AreaQueue.NONE) {
        return false;
      }
      queue.abandon(area);
      return true;
    }

    @Operation
    public Integer take() throws InterruptedException {
      int area = queue.take();
      if (area == AreaQueue.NONE) {
        return null;
      }
      int number = content[area];
      queue.release(area);
      return number;
    }

    @Operation
    public void end() {
      queue.end(null);
    }
  }

  /** What it is to whoever uses it from one thread. */
  public static class Model {
    private final ArrayDeque<Integer> ready = new ArrayDeque<>();
    private boolean ended;

    public Model() {
      for (int i = 1; i <= ENOUGH; i++) {
        ready.add(-i);
      }
    }

    public boolean publish(int number) {
      if (!ended) {
        ready.add(number);
      }
      return !ended;
    }

    public boolean abandon() {
      return !ended;
    }

    public Integer take() {
      return ready.poll();
    }

    public void end() {
      ended = true;
    }
  }

  @Test
  void calls_at_once_are_as_if_one_came_after_the_other() {
    new ModelCheckingOptions()
        .iterations(Thorough.count(5, 50))
        .invocationsPerIteration(Thorough.count(30, 1000))
        .threads(THREADS)
        .actorsPerThread(CALLS)
        .actorsBefore(0)
        .actorsAfter(0)
        .sequentialSpecification(Model.class)
        .check(Numbers.class);
  }

  @Test
  void calls_at_once_in_free_running_threads_are_as_if_one_came_after_the_other() {
    new StressOptions()
        .iterations(Thorough.count(5, 50))
        .invocationsPerIteration(Thorough.count(100, 10_000))
        .threads(THREADS)
        .actorsPerThread(CALLS)
        .actorsBefore(0)
        .actorsAfter(0)
        .sequentialSpecification(Model.class)
        .check(Numbers.class);
  }

  @Test
  void a_builder_and_a_trainer_with_one_area_come_to_an_end() {
    Lincheck.runConcurrentTest(
        Thorough.count(15, 1500),
        () -> {
          AreaQueue queue = new AreaQueue(1);
          int[] built = new int[1];
          int[] seen = new int[1];
          together(
              () -> {
                queue.abandon(queue.claim());
                for (int i = 0; i < 2; i++) {
                  int area = queue.claim();
                  built[0]++;
                  queue.publish(area);
                }
                queue.end(null);
              },
              () -> {
                for (int area = queue.take(); area != AreaQueue.NONE; area = queue.take()) {
                  seen[0]++;
                  check(built[0] == seen[0]); // it is not built in while it is used
                  queue.release(area);
                }
              });
          check(seen[0] == 2);
        });
  }

  @Test
  void two_builders_that_compete_for_one_area_both_get_it() {
    Lincheck.runConcurrentTest(
        Thorough.count(15, 1500),
        () -> {
          AreaQueue queue = new AreaQueue(1);
          int[] seen = new int[1];
          Conversation.Part builder = () -> queue.publish(queue.claim());
          together(
              builder,
              builder,
              () -> {
                for (int i = 0; i < 2; i++) {
                  queue.release(queue.take());
                  seen[0]++;
                }
              });
          check(seen[0] == 2 && queue.hasFree());
        });
  }

  @Test
  void an_abandoned_area_goes_to_whoever_waits() {
    Lincheck.runConcurrentTest(
        Thorough.count(15, 1500),
        () -> {
          AreaQueue queue = new AreaQueue(1);
          together(
              () -> queue.abandon(queue.claim()),
              () -> queue.publish(queue.claim()),
              () -> queue.release(queue.take()));
          check(queue.hasFree());
        });
  }

  @Test
  void the_end_wakes_everyone_who_waits_or_is_about_to() {
    Lincheck.runConcurrentTest(
        Thorough.count(15, 1500),
        () -> {
          AreaQueue queue = new AreaQueue(1);
          int[] got = new int[2];
          together(
              () -> {
                for (int area = queue.claim(); area != AreaQueue.NONE; area = queue.claim()) {
                  got[0]++;
                  queue.publish(area);
                }
              },
              () -> {
                for (int area = queue.take(); area != AreaQueue.NONE; area = queue.take()) {
                  got[1]++;
                  if (got[1] == 2) {
                    return; // and keeps it: nobody can claim any more
                  }
                  queue.release(area);
                }
              },
              () -> queue.end(null));
          check(got[1] <= got[0]); // what is published behind the end may find nobody
        });
  }
}
