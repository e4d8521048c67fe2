package org.gristway.plan.policy;

import org.gristway.Failure;
import org.gristway.plan.PlanInputs;

/** Frames that hold one sample each, for the policies that read sample by sample. */
final class SampleFrames {

  private SampleFrames() {}

  /**
   * The size of such a frame.
   *
   * @throws Failure (wrong call) if the memory of a rank has no room for one, with what would do
   */
  static long bytes(PlanInputs inputs) {
    long bytes = inputs.cuts().sampleFrameBytes();
    if (inputs.settings().memory() < bytes) {
      throw Failure.wrongCall(
          "the memory is too small for policy '%s': give it %d or more for each rank on a machine"
              + " (for the largest sample, and a rank has %d)",
          inputs.settings().policy(), bytes, inputs.settings().memory());
    }
    return bytes;
  }
}
