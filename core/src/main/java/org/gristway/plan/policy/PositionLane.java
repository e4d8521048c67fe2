package org.gristway.plan.policy;

import java.util.ArrayDeque;
import org.gristway.plan.Draws;
import org.gristway.plan.Permutation;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Choice;
import org.gristway.plan.PlanStep;
import org.gristway.plan.SampleSet;

/**
 * A lane of {@link RedirectPositionPolicy}. Requests are decided a stretch ahead of their delivery,
 * and what they bring in is loaded in that order, as far ahead as there are frames. There are some
 * more of those than slots: the sample that is to follow another in its slot, often at once, is on
 * its way before that one is delivered. Otherwise every such pair would have the storage wait.
 */
final class PositionLane extends BatchLane {

  /** How many requests are decided ahead. */
  private static final int AHEAD = 1024;

  /** Frames that no slot has, if there are so many: some times the reads that go on at once. */
  static final int SPARE_FRAMES = 64;

  private static final int NO_FRAME = -3;

  /** A sample that was brought in and is not delivered. */
  private static final class Held {
    final long sample;
    int frame = NO_FRAME;

    Held(long sample) {
      this.sample = sample;
    }
  }

  /** A request that is decided and not delivered. */
  private record Decided(long request, Held held) {}

  private final PlanInputs inputs;
  private final SampleSet samples;
  private final SlotGroups groups;
  private final FreeFrames freeFrames;
  private final Permutation requests;
  private final Held[] inSlot;
  private final ArrayDeque<Held> brought = new ArrayDeque<>(); // not loaded, for want of a frame
  private final ArrayDeque<Decided> ahead = new ArrayDeque<>();
  private long decided;
  private long loaded;

  PositionLane(PlanInputs inputs, long epoch, Deal deal, int rank, int firstFrame, int frames) {
    super(new Places(inputs, epoch, rank), epoch);
    this.inputs = inputs;
    this.samples = inputs.samples();
    this.freeFrames = new FreeFrames(firstFrame, frames);
    Draws ties = new Draws(Draws.key(inputs.key(epoch, Choice.DRAWS), rank));
    boolean hasAll = frames >= deal.samples(rank);
    int slots = hasAll ? frames : frames - Math.min(SPARE_FRAMES, frames / 4);
    this.groups = new SlotGroups(inputs, deal, rank, slots, ties);
    this.inSlot = new Held[groups.slots()];
    long key = Draws.key(inputs.key(epoch, Choice.REQUESTS), rank);
    this.requests = new Permutation(groups.samples(), key);
  }

  @Override
  public boolean loadsLeft() {
    return loaded < groups.pooled();
  }

  @Override
  boolean load() {
    while (brought.isEmpty() && decided < groups.samples() && ahead.size() < AHEAD) {
      decide();
    }
    if (brought.isEmpty() || freeFrames.isEmpty()) {
      return false;
    }
    Held next = brought.remove();
    next.frame = freeFrames.take();
    steps.add(new PlanStep.Load(inputs.layout().location(next.sample), next.frame, false));
    loaded++;
    return true;
  }

  private void decide() {
    long index = requests.at(decided++);
    if (index >= groups.pooled()) {
      long request = samples.nth(groups.large(index));
      Held large = new Held(request);
      large.frame = PlanStep.IN_BATCH;
      ahead.add(new Decided(request, large));
      return;
    }
    int part = groups.partOf(index);
    int slot = groups.slot(part, index);
    if (groups.isEmpty(slot)) {
      groups.fill(part, slot, this::bring);
    }
    groups.take(slot);
    ahead.add(new Decided(samples.nth(groups.sample(part, index)), inSlot[slot]));
  }

  private void bring(int slot, long sample) {
    inSlot[slot] = new Held(samples.nth(sample));
    brought.add(inSlot[slot]);
  }

  /**
   * The sample has a frame by now: what was brought in up to its request and is not delivered fits
   * the slots, and nothing that came later has a frame before all of that has.
   */
  @Override
  void deliver() {
    Decided next = ahead.remove();
    Held held = next.held;
    if (held.frame == PlanStep.IN_BATCH) {
      PlanStep.Load load =
          new PlanStep.Load(inputs.layout().location(held.sample), PlanStep.IN_BATCH, false);
      steps.add(load);
      steps.add(places.deliver(next.request, held.sample, PlanStep.IN_BATCH));
      return;
    }
    steps.add(places.deliver(next.request, held.sample, held.frame));
    steps.add(new PlanStep.Release(held.frame));
    freeFrames.give(held.frame);
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
