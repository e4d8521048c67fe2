package org.gristway.plan.policy;

import java.util.ArrayDeque;
import org.gristway.chunk.Extent;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.Shares;
import org.gristway.plan.policy.ExchangeDraws.Pushed;
import org.jspecify.annotations.Nullable;

/**
 * A lane whose rank delivers what all ranks read, and reads what all deliver. What it has to push,
 * and what it receives, {@link ExchangeDraws} says, which draws from the pools of all ranks; the
 * lane draws the same from a pool of its own.
 *
 * <p>At the time when a rank delivers step t, it draws what it pushes to others for step t + window
 * and then what it delivers itself; at the start of an epoch it pushes all steps up to that one. So
 * it never waits for others before it has given them all that they need to come as far as itself:
 * whichever rank is the furthest behind can go on, if each has room for what every other pushes for
 * window + 1 steps.
 */
final class ExchangeLane implements PlanSteps {

  private final ExtentPlan plan;
  private final int rank;
  private final Shares shares;
  private final int window;
  private ExchangeDraws draws;
  private final ExtentPool pool;
  private final Places places;
  private final ArrayDeque<Pushed> pending = new ArrayDeque<>(); // from the next step on
  private final ArrayDeque<PlanStep> steps = new ArrayDeque<>();
  private int loads; // among them, into frames
  private long step;
  private boolean ended;

  /**
   * @param draws of the plan
   */
  ExchangeLane(ExtentPlan plan, int rank, ExchangeDraws draws) {
    this.plan = plan;
    this.rank = rank;
    this.shares = plan.inputs().shares();
    this.window = plan.inputs().settings().exchange().window();
    this.draws = draws;
    this.pool = plan.pool(rank);
    this.places = new Places(plan.inputs(), plan.epoch(), rank);
    load();
  }

  @Override
  public boolean loadsLeft() {
    return loads > 0 || pool.loadsLeft();
  }

  @Override
  public @Nullable PlanStep next() {
    if (steps.isEmpty() && !ended) {
      if (step < shares.steps()) {
        while (pending.size() <= window && step + pending.size() < shares.steps()) {
          push(step + pending.size());
        }
        deliver(pending.remove());
        step++;
      } else {
        ended = true;
        steps.add(new PlanStep.EpochEnd(plan.epoch()));
      }
    }
    PlanStep next = steps.poll();
    loads -= isLoad(next) ? 1 : 0;
    return next;
  }

  private static boolean isLoad(@Nullable PlanStep step) {
    return step instanceof PlanStep.Load load && load.frame() != PlanStep.IN_BATCH;
  }

  private void push(long ahead) {
    Pushed pushed = pushed(ahead);
    int[] receivers = pushed.receivers()[rank];
    int[] positions = pushed.positions()[rank];
    for (int i = 0; i < receivers.length; i++) {
      int to = receivers[i];
      int position = positions[i];
      draw((sample, frame) -> new PlanStep.Send(sample, frame, to, ahead, position));
    }
    if (ahead == shares.steps() - 1) {
      pushRepeats(pushed);
    }
    pending.add(pushed);
  }

  /** Reads once more what ranks without a sample repeat, where this rank alone can. */
  private void pushRepeats(Pushed last) {
    for (int to = 0; to < last.sources().length; to++) {
      long sample = places.repeated(to);
      if (last.sources()[to].length == 0
          && to != rank
          && plan.deal().readerOf(sample, to) == rank) {
        Extent location = plan.inputs().layout().location(sample);
        steps.add(new PlanStep.Load(location, PlanStep.IN_BATCH, true));
        steps.add(new PlanStep.Send(sample, PlanStep.IN_BATCH, to, last.step(), 0));
      }
    }
  }

  private Pushed pushed(long ahead) {
    Pushed known = draws.at(ahead);
    if (known == null) {
      draws = new ExchangeDraws(plan); // in which nobody is ahead
      return pushed(ahead);
    }
    return known;
  }

  private void deliver(Pushed due) {
    int[] sources = due.sources()[rank];
    for (int position = 0; position < sources.length; position++) {
      if (sources[position] == rank) {
        draw(places::deliver);
      } else {
        long sample = due.samples()[rank][position];
        steps.add(new PlanStep.Receive(sample, sources[position], step, position));
        steps.add(places.deliver(sample, PlanStep.RECEIVED));
      }
    }
    if (sources.length == 0) {
      receiveRepeat();
    }
    while (places.isIn(step) && !places.isFresh()) {
      places.repeat(steps);
    }
  }

  /** Takes what another rank must read for this one, to which nothing is due, if there is need. */
  private void receiveRepeat() {
    long sample = places.repeated(rank);
    int reader = plan.deal().readerOf(sample, rank);
    if (reader != rank) {
      steps.add(new PlanStep.Receive(sample, reader, step, 0));
      steps.add(places.repeatReceived(sample));
    }
  }

  private void draw(ExtentPool.Taker taker) {
    pool.draw(steps, taker);
    load();
  }

  /** Loads at once what there is room for: the next draw may be far off. */
  private void load() {
    while (pool.load(steps)) {
      loads++;
    }
  }
}
