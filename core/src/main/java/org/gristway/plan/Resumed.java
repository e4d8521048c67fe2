package org.gristway.plan;

import java.util.LinkedHashMap;
import org.jspecify.annotations.Nullable;

/**
 * A lane from one of its steps on. What came before is computed and left out, except for the loads
 * of frames that are still held: their extents must be read again.
 */
public final class Resumed implements PlanSteps {

  private final PlanSteps lane;
  private final LinkedHashMap<Integer, PlanStep.Load> held = new LinkedHashMap<>();
  private PlanStep.@Nullable Load straight; // the load that the first delivery needs
  private @Nullable PlanStep first;

  public Resumed(PlanSteps lane, long step) {
    this.lane = lane;
    first = lane.next();
    while (first != null && !isAt(first, step)) {
      switch (first) {
        case PlanStep.Load load when load.frame() == PlanStep.IN_BATCH -> straight = load;
        case PlanStep.Load load ->
            held.put(load.frame(), new PlanStep.Load(load.extent(), load.frame(), true));
        case PlanStep.Release release -> held.remove(release.frame());
        case PlanStep.Deliver _ -> straight = null;
        default -> {}
      }
      first = lane.next();
    }
  }

  private static boolean isAt(PlanStep at, long step) {
    return switch (at) {
      case PlanStep.Deliver deliver -> deliver.step() >= step;
      case PlanStep.EpochEnd _ -> true;
      default -> false;
    };
  }

  @Override
  public boolean loadsLeft() {
    return !held.isEmpty() || lane.loadsLeft();
  }

  @Override
  public @Nullable PlanStep next() {
    if (!held.isEmpty()) {
      return held.pollFirstEntry().getValue();
    }
    PlanStep next = straight;
    if (next != null) {
      straight = null;
      return next;
    }
    next = first;
    if (next != null) {
      first = null;
      return next;
    }
    return lane.next();
  }
}
