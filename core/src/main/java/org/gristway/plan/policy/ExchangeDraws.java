package org.gristway.plan.policy;

import java.util.ArrayDeque;
import java.util.Arrays;
import org.gristway.plan.PlanStep;
import org.jspecify.annotations.Nullable;

/**
 * What the ranks of a plan push to each other, step by step: who reads the sample of a place is
 * drawn; which sample that is, the pool of the rank that reads it decides. So the pools of all
 * ranks are drawn from, in the order in which their lanes do it.
 *
 * <p>Lanes that go on together share one, and with it the work. Any thread.
 */
final class ExchangeDraws {

  /**
   * What is pushed for one step.
   *
   * @param sources by rank and position: who reads the sample
   * @param samples by rank and position: what is received there; nothing where a rank reads itself
   * @param receivers by the rank that reads: to whom it pushes, one sample after the other
   * @param positions the same: for which place
   */
  record Pushed(
      long step, int[][] sources, long[][] samples, int[][] receivers, int[][] positions) {}

  /** Steps that are remembered for lanes that have not come to them yet, beside the window. */
  private static final int REMEMBERED = 8;

  private final ExtentPlan plan;
  private final int window;
  private final @Nullable Pushed[] remembered;
  private final ExtentPool.Taker taker = this::take;
  private @Nullable Sources sources; // once something is drawn
  private ExtentPool[] pools = {};
  private final ArrayDeque<int[][]> pending = new ArrayDeque<>(); // sources, of steps not delivered
  private final ArrayDeque<PlanStep> discarded = new ArrayDeque<>();
  private long taken; // the sample that was drawn last
  private long next; // step to be drawn

  ExchangeDraws(ExtentPlan plan) {
    this.plan = plan;
    this.window = plan.inputs().settings().exchange().window();
    this.remembered = new Pushed[window + REMEMBERED];
  }

  /**
   * What is pushed for a step of the plan, or null if that is forgotten: others are far ahead, and
   * who still needs it draws anew.
   */
  synchronized @Nullable Pushed at(long step) {
    while (next <= step) {
      draw();
    }
    Pushed known = remembered[(int) (step % remembered.length)];
    return known != null && known.step() == step ? known : null;
  }

  private void draw() {
    Sources drawn = sources != null ? sources : begin();
    if (pending.size() > window) {
      deliver(pending.remove());
    }
    Pushed made = push(drawn.next());
    pending.add(made.sources());
    remembered[(int) (next % remembered.length)] = made;
    next++;
  }

  private Sources begin() {
    pools = new ExtentPool[plan.inputs().world().ranks()];
    for (int rank = 0; rank < pools.length; rank++) {
      pools[rank] = plan.pool(rank);
      load(rank);
    }
    Sources begun = new Sources(plan);
    sources = begun;
    return begun;
  }

  /** Has every rank draw what it pushes for a step. */
  private Pushed push(int[][] from) {
    int[] counts = new int[pools.length];
    for (int to = 0; to < pools.length; to++) {
      for (int source : from[to]) {
        counts[source] += source == to ? 0 : 1;
      }
    }
    long[][] samples = new long[pools.length][];
    int[][] receivers = new int[pools.length][];
    int[][] positions = new int[pools.length][];
    for (int rank = 0; rank < pools.length; rank++) {
      samples[rank] = new long[from[rank].length];
      receivers[rank] = new int[counts[rank]];
      positions[rank] = new int[counts[rank]];
    }
    Arrays.fill(counts, 0);
    for (int to = 0; to < pools.length; to++) {
      for (int position = 0; position < from[to].length; position++) {
        int source = from[to][position];
        if (source != to) {
          receivers[source][counts[source]] = to;
          positions[source][counts[source]++] = position;
          samples[to][position] = draw(source);
        }
      }
    }
    return new Pushed(next, from, samples, receivers, positions);
  }

  /** Has every rank draw what it delivers itself. */
  private void deliver(int[][] from) {
    for (int to = 0; to < pools.length; to++) {
      for (int source : from[to]) {
        if (source == to) {
          draw(to);
        }
      }
    }
  }

  private long draw(int source) {
    pools[source].draw(discarded, taker);
    load(source);
    return taken;
  }

  /** The steps are none of anybody's: lanes have their own, of their own pools. */
  private PlanStep take(long sample, int frame) {
    taken = sample;
    return new PlanStep.Release(frame);
  }

  private void load(int source) {
    do {
      discarded.clear();
    } while (pools[source].load(discarded));
  }
}
