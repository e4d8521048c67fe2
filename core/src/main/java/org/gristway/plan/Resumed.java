package org.gristway.plan;

import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A lane from one of its steps on. What came before is computed and left out, except for what is
 * still to come of it: the loads of frames that are still held, whose extents must be read again,
 * and what is pushed ahead of that step to be delivered behind it.
 */
public final class Resumed implements PlanSteps {

  private final PlanSteps lane;
  private final Iterator<PlanStep> early; // of the steps before the first
  private @Nullable PlanStep first;

  /** A load that is made again if its frame is still held, or something of it is pushed. */
  private static final class Held {
    final long number;
    boolean isPushed;

    Held(long number) {
      this.number = number;
    }
  }

  public Resumed(PlanSteps lane, long step) {
    this.lane = lane;
    LinkedHashMap<Long, PlanStep> kept = new LinkedHashMap<>();
    Map<Integer, Held> held = new HashMap<>();
    PlanStep.Load straight = null; // the load that the next step needs
    long number = 0;
    first = lane.next();
    while (first != null && !isAt(first, step)) {
      number++;
      switch (first) {
        case PlanStep.Load load when load.frame() == PlanStep.IN_BATCH -> straight = load;
        case PlanStep.Load load -> {
          held.put(load.frame(), new Held(number));
          kept.put(number, new PlanStep.Load(load.extent(), load.frame(), true));
        }
        case PlanStep.Send send when send.step() >= step -> {
          if (straight != null) {
            kept.put(-number, new PlanStep.Load(straight.extent(), straight.frame(), true));
          }
          Held from = held.get(send.frame());
          if (from != null) {
            from.isPushed = true;
          }
          kept.put(number, send);
          straight = null;
        }
        case PlanStep.Send _, PlanStep.Deliver _ -> straight = null;
        case PlanStep.Release release -> {
          Held over = held.remove(release.frame());
          if (over != null && over.isPushed) {
            kept.put(number, release);
          } else if (over != null) {
            kept.remove(over.number);
          }
        }
        default -> {}
      }
      first = lane.next();
    }
    if (straight != null) {
      kept.put(-number, straight);
    }
    this.early = kept.values().iterator();
  }

  private static boolean isAt(PlanStep at, long step) {
    return switch (at) {
      case PlanStep.Deliver deliver -> deliver.step() >= step;
      case PlanStep.Receive receive -> receive.step() >= step;
      case PlanStep.EpochEnd _ -> true;
      default -> false;
    };
  }

  @Override
  public boolean loadsLeft() {
    return early.hasNext() || lane.loadsLeft();
  }

  @Override
  public @Nullable PlanStep next() {
    if (early.hasNext()) {
      return early.next();
    }
    PlanStep next = first;
    if (next != null) {
      first = null;
      return next;
    }
    return lane.next();
  }
}
