package org.gristway.plan.policy;

import java.util.ArrayList;
import java.util.List;
import org.gristway.plan.Draws;
import org.gristway.plan.Permutation;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Choice;
import org.gristway.plan.PlanStep;
import org.gristway.plan.SampleSet;
import org.jspecify.annotations.Nullable;

/**
 * A lane of {@link RedirectPositionPolicy}. Requests are decided a stretch ahead of their delivery:
 * what a request brings in is loaded as soon as its slot is free, not when it is asked for.
 */
final class PositionLane extends BatchLane {

  /** How many requests are decided ahead: more reads at once than any storage takes. */
  private static final int AHEAD = 1024;

  /** A request that is decided and not delivered. */
  private static final class Decided {
    final long request;
    final long sample;
    final int slot; // or IN_BATCH
    @Nullable List<PlanStep.Load> after; // loads into the slots that its delivery makes free

    Decided(long request, long sample, int slot) {
      this.request = request;
      this.sample = sample;
      this.slot = slot;
    }
  }

  private final PlanInputs inputs;
  private final SampleSet samples;
  private final SlotGroups groups;
  private final int firstFrame;
  private final Permutation requests;
  private final Decided[] ahead = new Decided[AHEAD]; // by the request's number, modulo AHEAD
  private final long[] freed; // by slot: the request whose delivery makes it free
  private long decided;
  private long delivered;
  private long loaded;

  PositionLane(PlanInputs inputs, long epoch, Deal deal, int rank, int firstFrame, int frames) {
    super(new Places(inputs, epoch, rank), epoch);
    this.inputs = inputs;
    this.samples = inputs.samples();
    this.firstFrame = firstFrame;
    Draws ties = new Draws(Draws.key(inputs.key(epoch, Choice.DRAWS), rank));
    this.groups = new SlotGroups(inputs, deal, rank, frames, ties);
    this.freed = new long[groups.slots()];
    long key = Draws.key(inputs.key(epoch, Choice.REQUESTS), rank);
    this.requests = new Permutation(groups.samples(), key);
  }

  @Override
  public boolean loadsLeft() {
    return loaded < groups.pooled() || steps.stream().anyMatch(PositionLane::goesToSlot);
  }

  private static boolean goesToSlot(PlanStep step) {
    return step instanceof PlanStep.Load load && load.frame() != PlanStep.IN_BATCH;
  }

  @Override
  boolean load() {
    while (steps.isEmpty() && decided < groups.samples() && decided - delivered < AHEAD) {
      decide();
    }
    return !steps.isEmpty();
  }

  private void decide() {
    long index = requests.at(decided);
    long request = samples.nth(groups.sample(index));
    Decided next;
    if (index >= groups.pooled()) {
      next = new Decided(request, request, PlanStep.IN_BATCH);
    } else {
      int slot = groups.slotOf(index);
      if (groups.isEmpty(slot)) {
        groups.fill(index, this::loads);
      }
      next = new Decided(request, samples.nth(groups.take(slot)), slot);
      freed[slot] = decided + 1;
    }
    ahead[(int) (decided++ % AHEAD)] = next;
  }

  /** Loads a sample into a slot: now, or after the delivery that makes it free. */
  private void loads(int slot, long sample) {
    PlanStep.Load load =
        new PlanStep.Load(inputs.layout().location(samples.nth(sample)), firstFrame + slot, false);
    if (freed[slot] <= delivered) {
      add(load);
      return;
    }
    Decided before = ahead[(int) ((freed[slot] - 1) % AHEAD)];
    if (before.after == null) {
      before.after = new ArrayList<>(1);
    }
    before.after.add(load);
  }

  private void add(PlanStep.Load load) {
    steps.add(load);
    loaded++;
  }

  @Override
  void deliver() {
    Decided next = ahead[(int) (delivered++ % AHEAD)];
    if (next.slot == PlanStep.IN_BATCH) {
      PlanStep.Load load =
          new PlanStep.Load(inputs.layout().location(next.sample), PlanStep.IN_BATCH, false);
      steps.add(load);
      steps.add(places.deliver(next.request, next.sample, PlanStep.IN_BATCH));
      return;
    }
    int frame = firstFrame + next.slot;
    steps.add(places.deliver(next.request, next.sample, frame));
    steps.add(new PlanStep.Release(frame));
    if (next.after != null) {
      next.after.forEach(this::add);
    }
  }

  /** How often an extent, or the part of it that is this rank's, has been opened so far. */
  long openings() {
    return groups.openings();
  }

  /** How many there are. */
  int parts() {
    return groups.parts();
  }
}
