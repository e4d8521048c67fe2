package org.gristway.read;

import java.util.ArrayDeque;
import java.util.List;
import org.gristway.plan.PlanStep;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.StepSource;
import org.jspecify.annotations.Nullable;

/**
 * A plan's steps as far as somebody has asked for samples. What follows the last delivery, up to
 * the next, belongs to it: the room that it makes is loaded into at once.
 */
final class AskedSteps implements StepSource {

  /** An index that was asked for; if it must be exactly that sample, then {@code exact}. */
  private record Ask(long index, boolean exact, boolean repeat) {}

  /** A step that was given and not carried out. */
  record Undone(PlanStep step, long epoch) {}

  private final SampleLayout layout;
  private final @Nullable StepSource plan; // none if every sample is asked for exactly
  private final ArrayDeque<Ask> asks = new ArrayDeque<>();
  private final ArrayDeque<Undone> undone = new ArrayDeque<>(); // they come before the plan's next
  private PlanStep.@Nullable Load heldLoad; // that the plan's next delivery needs, if it needs one
  private PlanStep.@Nullable Deliver held; // the next delivery of the plan
  private PlanStep.@Nullable Deliver loaded; // the delivery whose load has just been returned
  private long epoch;
  private long request;
  private long planEpoch; // of the plan's last step
  private boolean ofPlan; // the last step was one that the plan does ahead

  AskedSteps(SampleLayout layout, @Nullable StepSource plan) {
    this.layout = layout;
    this.plan = plan;
  }

  /** Begins a request, the n-th of an epoch: its samples are delivered as one step. */
  void begin(long ofEpoch, long number) {
    epoch = ofEpoch;
    request = number;
  }

  /** Some sample of the plan, in answer to this index. */
  void askAny(long index) {
    asks.add(new Ask(index, false, false));
  }

  /** Exactly this sample. */
  void askExactly(long index, boolean repeat) {
    asks.add(new Ask(index, true, repeat));
  }

  @Override
  public long epoch() {
    return ofPlan ? planEpoch : epoch;
  }

  @Override
  public @Nullable PlanStep next() {
    ofPlan = false;
    PlanStep.Deliver next = loaded;
    if (next != null) {
      loaded = null;
      return next;
    }
    Ask ask = asks.peek();
    if (ask != null && ask.exact()) {
      asks.remove();
      loaded =
          new PlanStep.Deliver(
              request, 0, 0, ask.index(), ask.index(), PlanStep.IN_BATCH, ask.repeat());
      return new PlanStep.Load(layout.location(ask.index()), PlanStep.IN_BATCH, ask.repeat());
    }
    if (plan == null) {
      return null;
    }
    if (held == null) {
      PlanStep step = nextOf(plan);
      if (step instanceof PlanStep.Load load && load.frame() == PlanStep.IN_BATCH) {
        heldLoad = load; // and not told before its delivery is: another read may come between
        step = nextOf(plan);
      }
      if (!(step instanceof PlanStep.Deliver deliver)) {
        ofPlan = true;
        return step;
      }
      held = deliver;
    }
    return ask == null ? null : answer(asks.remove(), held);
  }

  private @Nullable PlanStep nextOf(StepSource source) {
    Undone first = undone.poll();
    PlanStep step = first == null ? source.next() : first.step;
    planEpoch = first == null ? source.epoch() : first.epoch;
    return step;
  }

  /**
   * Takes back all steps of a request from its first delivery on, in their order. The next requests
   * are answered with their samples.
   */
  void takeBack(List<Undone> steps) {
    if (plan == null) {
      return; // whoever asks exactly asks again
    }
    if (held != null) {
      undone.push(new Undone(held, planEpoch));
      held = null;
    }
    if (heldLoad != null) {
      undone.push(new Undone(heldLoad, planEpoch));
      heldLoad = null;
    }
    for (Undone each : steps.reversed()) {
      boolean isExact =
          switch (each.step) {
            case PlanStep.Deliver deliver -> deliver.repeat();
            case PlanStep.Load load -> load.frame() == PlanStep.IN_BATCH && load.again();
            default -> false;
          };
      if (!isExact) {
        undone.push(each);
      }
    }
  }

  private PlanStep answer(Ask ask, PlanStep.Deliver deliver) {
    PlanStep.Deliver answer =
        new PlanStep.Deliver(
            request,
            deliver.position(),
            deliver.rank(),
            ask.index(),
            deliver.sample(),
            deliver.frame(),
            deliver.repeat());
    PlanStep.Load load = heldLoad;
    held = null;
    heldLoad = null;
    if (load == null) {
      return answer;
    }
    loaded = answer;
    return load;
  }
}
