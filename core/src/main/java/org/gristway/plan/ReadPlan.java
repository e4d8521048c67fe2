package org.gristway.plan;

/**
 * What one epoch (or what is left of it) does, on every rank of the world. A pure function of the
 * inputs, the epoch and nothing else; immutable, for any thread.
 */
public interface ReadPlan {

  PlanInputs inputs();

  long epoch();

  /** Batches of each rank. */
  default long steps() {
    return inputs().shares().steps();
  }

  /** How many frames a lane uses. */
  int laneFrames();

  /**
   * The first frame that a rank's lane uses: lanes have stretches of their own, unless they share.
   */
  default int firstFrame(int rank) {
    return inputs().world().laneOf(rank) * laneFrames();
  }

  /** How many frames a node has, for all its lanes. */
  default int frames() {
    return laneFrames() * inputs().world().mostRanks();
  }

  /** The size of a frame. */
  default long frameBytes() {
    return inputs().settings().extentBytes();
  }

  /**
   * The memory of all frames of a node, extents larger than a frame included, where the plan keeps
   * such: never more than the budget, except for the policy that knows none.
   */
  default long residentBytes() {
    return frames() * frameBytes();
  }

  /** True if an extent, once it is loaded, stays in its frame to the end of the run. */
  default boolean staysResident() {
    return false;
  }

  /**
   * What is in the memory of all nodes when the epoch begins, unless it begins cold: that which
   * stays from the epochs before.
   */
  default long bytesAtStart() {
    return 0;
  }

  /**
   * The steps of one rank of this node.
   *
   * @param cold true if nothing is left in memory of an epoch before: the run begins here
   */
  PlanSteps lane(int rank, boolean cold);
}
