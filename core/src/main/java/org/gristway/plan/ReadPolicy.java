package org.gristway.plan;

/**
 * A way to read: turns inputs into plans. Stateless, for any thread.
 *
 * <p>Every policy keeps the invariants that {@code ReadPolicyContract} tests: each sample of the
 * set exactly once, as many batches for every rank, the same order for the same inputs, and never
 * more frames than it has said.
 */
public interface ReadPolicy {

  /** Its name in commands, documents and tests. */
  String name();

  /** Raised with every change that alters an order: states of another version are refused. */
  int planVersion();

  /** True if its plans keep samples from epoch to epoch, and fetch them where they are kept. */
  default boolean caches() {
    return false;
  }

  /** True if its plans have ranks mix what they read, where that is asked for. */
  default boolean exchanges() {
    return false;
  }

  /**
   * Plans one epoch.
   *
   * @throws org.gristway.Failure (wrong call) if the memory is too small, with what would do
   */
  ReadPlan plan(PlanInputs inputs, long epoch);
}
