package org.gristway.plan.policy;

import org.gristway.plan.PlanInputs;

/**
 * How a policy that caches divides a rank's memory: frames for the samples that are on their way,
 * and the rest for those that are kept.
 *
 * @param frames that a lane has, one for a sample
 * @param cacheBytes for samples that are kept, by their lengths
 */
record Staging(int frames, long frameBytes, long cacheBytes) {

  /** More on their way than any storage takes at once. */
  private static final int MOST_FRAMES = 1024;

  /** The part of the memory that frames take at most, unless that is none. */
  private static final int SHARE = 4;

  static Staging of(PlanInputs inputs) {
    long frameBytes = SampleFrames.bytes(inputs);
    long memory = inputs.settings().memory();
    long useful = Math.min(MOST_FRAMES, inputs.layout().sampleCount() + 1);
    int frames = (int) Math.clamp(memory / SHARE / frameBytes, 1, useful);
    return new Staging(frames, frameBytes, memory - frames * frameBytes);
  }

  /** The memory of a node whose ranks use all of theirs. */
  long residentBytes(int ranks) {
    return ranks * (frames * frameBytes + cacheBytes);
  }
}
