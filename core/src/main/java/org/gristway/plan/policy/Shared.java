package org.gristway.plan.policy;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.jspecify.annotations.Nullable;

/**
 * Tables that many plans are made from. Each is made for the first of them, and kept as long as one
 * of them is; the last one longer, for the plans to come. For any thread: those that come while a
 * table is made wait for it, and those of other inputs do not.
 */
final class Shared<T> {

  /** What a table depends on: not the segment, nor which of the nodes this is. */
  private record Origin(
      String layout, long seed, int ranks, int nodes, PlanSettings settings, long epoch) {}

  /** A table that is there, being made, or no longer there. */
  private static final class Slot<T> {

    private WeakReference<@Nullable T> table = new WeakReference<>(null);

    synchronized T get(Supplier<T> maker) {
      T known = table.get();
      if (known == null) {
        known = maker.get();
        table = new WeakReference<>(known);
      }
      return known;
    }
  }

  private static final int MOST_SLOTS = 64; // which are small without their tables

  private final Map<Origin, Slot<T>> slots = new HashMap<>();

  @SuppressWarnings("unused") // it is kept by being here
  private @Nullable T last;

  /**
   * The table of these inputs.
   *
   * @param epoch the first that the table is for
   */
  T of(PlanInputs inputs, long epoch, Supplier<T> maker) {
    Origin origin =
        new Origin(
            inputs.layout().id(),
            inputs.seed(),
            inputs.world().ranks(),
            inputs.world().nodes(),
            inputs.settings(),
            epoch);
    Slot<T> slot;
    synchronized (this) {
      if (slots.size() >= MOST_SLOTS) {
        slots.clear(); // those in use are made again, at worst
      }
      slot = slots.computeIfAbsent(origin, _ -> new Slot<>());
    }
    T table = slot.get(maker);
    synchronized (this) {
      last = table;
    }
    return table;
  }
}
