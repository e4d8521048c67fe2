package org.gristway.simulator;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * How loaders of the literature get their samples, as Boehringer's thesis on NoPFS (2020) describes
 * them. They react to time, or stop the run for a while, and so are no plans; {@link BaselineRun}
 * gives them their times.
 */
public enum Baseline {
  /** Never waits: what the work alone takes. */
  PERFECT(Before.NOTHING, Then.AT_HAND, false),

  /** Reads ahead along the order, always from the store: double buffering. */
  STAGING(Before.NOTHING, Then.FROM_STORE, false),

  /** DeepIO: what fits all memories is loaded first, the rest is read when it is asked for. */
  DEEPIO_ORDERED(Before.FILL_MEMORY, Then.REST_ON_DEMAND, false),

  /** DeepIO: loaded samples take the place of those that are not. */
  DEEPIO_OPPORTUNISTIC(Before.FILL_MEMORY, Then.AT_HAND, false),

  /** Each node loads a part of its own and is trained on that alone. */
  PARALLEL_STAGING(Before.FILL_MEMORY_ONE_BY_ONE, Then.AT_HAND, false),

  /** LBANN: each sample stays with the node that read it first, in the first epoch. */
  LBANN_DYNAMIC(Before.NOTHING, Then.FROM_STORE_ONCE, true),

  /** LBANN: each node loads its part before training begins. */
  LBANN_PRELOADING(Before.FILL_MEMORY, Then.AT_HAND, true);

  /** What is done before training begins. */
  enum Before {
    NOTHING,
    FILL_MEMORY,
    FILL_MEMORY_ONE_BY_ONE
  }

  /** Where samples come from then. */
  enum Then {
    AT_HAND,
    FROM_STORE,
    FROM_STORE_ONCE,
    REST_ON_DEMAND
  }

  final Before before;
  final Then then;

  /** True if it cannot run unless the memories together hold the dataset. */
  final boolean needsAll;

  Baseline(Before before, Then then, boolean needsAll) {
    this.before = before;
    this.then = then;
    this.needsAll = needsAll;
  }

  /** Its name in scenarios and results. */
  public String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** The baseline with this name, or null if none has it. */
  static @Nullable Baseline named(String label) {
    return Arrays.stream(values())
        .filter(each -> each.label().equals(label))
        .findFirst()
        .orElse(null);
  }

  /** The names of all. */
  public static List<String> labels() {
    return Arrays.stream(values()).map(Baseline::label).toList();
  }
}
