package org.gristway.plan;

import java.util.ArrayDeque;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/**
 * A lane over all epochs of a run, one after the other. Once an epoch has nothing left to load, its
 * free frames take the first loads of the next: those that it has no use for at once, the others
 * after the release that makes room. The frames of the next epoch are renamed accordingly. A fetch
 * waits for its own epoch, since what it fetches may still have to be kept in this one.
 */
public final class RunSteps implements StepSource {

  /** The plans of a run. */
  public interface Epochs {
    /** The plan of an epoch, or null behind the last. */
    @Nullable ReadPlan plan(long epoch);
  }

  private final Epochs epochs;
  private final int rank;
  private final ArrayDeque<PlanStep> ahead = new ArrayDeque<>();
  private final BitSet held = new BitSet(); // frames, counted from the lane's first

  private @Nullable Lane current;
  private @Nullable Lane upcoming;
  private long epoch;

  /** A lane of one epoch, with its frames renamed. */
  private static final class Lane {
    final long epoch;
    final PlanSteps steps;
    final int first; // of the lane's frames
    final int[] frames; // by the plan's number, both counted from the lane's first
    final int[] plannedAs; // the other way round
    @Nullable PlanStep peeked;

    Lane(ReadPlan plan, PlanSteps steps, int rank) {
      this.epoch = plan.epoch();
      this.steps = steps;
      this.first = plan.firstFrame(rank);
      this.frames = new int[plan.laneFrames()];
      this.plannedAs = new int[frames.length];
      for (int i = 0; i < frames.length; i++) {
        frames[i] = i;
        plannedAs[i] = i;
      }
    }

    @Nullable PlanStep next() {
      PlanStep step = peek();
      peeked = null;
      return step == null ? null : renamed(step);
    }

    @Nullable PlanStep peek() {
      if (peeked == null) {
        peeked = steps.next();
      }
      return peeked;
    }

    /** Has a frame of the plan be this one, and whichever was this one be that. */
    void rename(int plannedFrame, int actualFrame) {
      int planned = plannedFrame - first;
      int actual = actualFrame - first;
      int other = plannedAs[actual];
      int given = frames[planned];
      frames[planned] = actual;
      plannedAs[actual] = planned;
      frames[other] = given;
      plannedAs[given] = other;
    }

    private PlanStep renamed(PlanStep step) {
      return switch (step) {
        case PlanStep.Load load when isRenamed(load.frame()) ->
            new PlanStep.Load(load.extent(), renamed(load.frame()), load.again());
        case PlanStep.Fetch fetch when isRenamed(fetch.frame()) ->
            new PlanStep.Fetch(fetch.sample(), fetch.source(), renamed(fetch.frame()));
        case PlanStep.Deliver old when isRenamed(old.frame()) ->
            new PlanStep.Deliver(
                old.step(),
                old.position(),
                old.rank(),
                old.request(),
                old.sample(),
                renamed(old.frame()),
                old.repeat());
        case PlanStep.Send send when isRenamed(send.frame()) ->
            new PlanStep.Send(
                send.sample(), renamed(send.frame()), send.rank(), send.step(), send.position());
        case PlanStep.Release release when isRenamed(release.frame()) ->
            new PlanStep.Release(renamed(release.frame()));
        default -> step;
      };
    }

    private boolean isRenamed(int frame) {
      return frame >= 0 && renamed(frame) != frame;
    }

    private int renamed(int frame) {
      return first + frames[frame - first];
    }
  }

  /**
   * @param epoch to begin with
   * @param step of its plan that is the first to be delivered
   */
  public RunSteps(long epoch, long step, int rank, Epochs epochs) {
    this.epochs = epochs;
    this.rank = rank;
    this.epoch = epoch;
    ReadPlan first = epochs.plan(epoch);
    if (first != null) {
      PlanSteps steps = first.lane(rank, true);
      this.current = new Lane(first, step == 0 ? steps : new Resumed(steps, step), rank);
    }
  }

  @Override
  public long epoch() {
    return epoch;
  }

  @Override
  public @Nullable PlanStep next() {
    PlanStep early = ahead.poll();
    if (early != null) {
      epoch = upcoming().epoch;
      return early;
    }
    while (current != null) {
      PlanStep step = current.next();
      if (step != null) {
        epoch = current.epoch;
        note(step, current.first);
        if (!current.steps.loadsLeft() && !isStraight(step)) {
          loadAhead(current);
        }
        return step;
      }
      Lane next = upcomingOrNone(current.epoch + 1);
      current = next;
      upcoming = null;
    }
    return null;
  }

  /** True if the delivery of what it gets must be the next step. */
  private static boolean isStraight(PlanStep step) {
    return step instanceof PlanStep.Receive
        || (step instanceof PlanStep.Load load && load.frame() == PlanStep.IN_BATCH);
  }

  private void note(PlanStep step, int first) {
    switch (step) {
      case PlanStep.Load load when load.frame() != PlanStep.IN_BATCH ->
          held.set(load.frame() - first);
      case PlanStep.Fetch fetch -> held.set(fetch.frame() - first);
      case PlanStep.Release release -> held.clear(release.frame() - first);
      default -> {}
    }
  }

  /** Gives the free frames of an epoch that loads no more to the next. */
  private void loadAhead(Lane now) {
    Lane next = upcomingOrNone(now.epoch + 1);
    if (next == null) {
      return;
    }
    for (int free = held.nextClearBit(0);
        free < now.frames.length && next.peek() instanceof PlanStep.Load load && !isStraight(load);
        free = held.nextClearBit(free)) {
      next.rename(load.frame(), now.first + free);
      PlanStep renamed = next.next();
      if (renamed != null) {
        note(renamed, now.first);
        ahead.add(renamed);
      }
    }
  }

  private Lane upcoming() {
    Lane lane = upcoming;
    if (lane == null) {
      throw new IllegalStateException("no epoch is upcoming");
    }
    return lane;
  }

  private @Nullable Lane upcomingOrNone(long number) {
    if (upcoming == null) {
      ReadPlan plan = epochs.plan(number);
      upcoming = plan == null ? null : new Lane(plan, plan.lane(rank, false), rank);
    }
    return upcoming;
  }
}
