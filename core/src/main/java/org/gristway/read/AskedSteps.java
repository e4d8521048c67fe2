package org.gristway.read;

import java.util.ArrayDeque;
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

  private final SampleLayout layout;
  private final @Nullable StepSource plan; // none if every sample is asked for exactly
  private final ArrayDeque<Ask> asks = new ArrayDeque<>();
  private PlanStep.@Nullable Load heldLoad; // that the plan's next delivery needs, if it needs one
  private PlanStep.@Nullable Deliver held; // the next delivery of the plan
  private PlanStep.@Nullable Deliver loaded; // the delivery whose load has just been returned
  private long epoch;
  private long request;
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
    return ofPlan && plan != null ? plan.epoch() : epoch;
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
      PlanStep step = plan.next();
      if (step instanceof PlanStep.Load load && load.frame() == PlanStep.IN_BATCH) {
        heldLoad = load; // and not told before its delivery is: another read may come between
        step = plan.next();
      }
      if (!(step instanceof PlanStep.Deliver deliver)) {
        ofPlan = true;
        return step;
      }
      held = deliver;
    }
    return ask == null ? null : answer(asks.remove(), held);
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
