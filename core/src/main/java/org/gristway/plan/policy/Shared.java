package org.gristway.plan.policy;

import java.util.function.Supplier;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.jspecify.annotations.Nullable;

/**
 * A table that many plans are made from. It is made for the first of them, and anew for one of
 * other inputs. For any thread: those that come while it is made wait for it.
 */
final class Shared<T> {

  /** What a table depends on: neither the segment nor how ranks are grouped into nodes. */
  private record Origin(String layout, long seed, int ranks, PlanSettings settings, long epoch) {}

  private record Made<T>(Origin origin, T table) {}

  private @Nullable Made<T> last;

  /**
   * The table of these inputs.
   *
   * @param epoch the first that the table is for
   */
  synchronized T of(PlanInputs inputs, long epoch, Supplier<T> maker) {
    Origin origin =
        new Origin(
            inputs.layout().id(), inputs.seed(), inputs.world().ranks(), inputs.settings(), epoch);
    Made<T> known = last;
    if (known == null || !known.origin().equals(origin)) {
      known = new Made<>(origin, maker.get());
      last = known;
    }
    return known.table();
  }
}
