package org.gristway.plan;

import org.jspecify.annotations.Nullable;

/** Which samples the first steps of a plan deliver, on all ranks: the plan, replayed. */
final class Delivered {

  private Delivered() {}

  /** The samples of the plan that its first {@code steps} steps leave. */
  static SampleSet leftAfter(ReadPlan plan, long steps) {
    PlanInputs inputs = plan.inputs();
    long[] delivered =
        new long[Math.max(1, Math.toIntExact((inputs.layout().sampleCount() + 63) / 64))];
    for (int rank = 0; rank < inputs.world().ranks() && steps > 0; rank++) {
      PlanSteps lane = plan.lane(rank, true);
      for (@Nullable PlanStep step = lane.next(); step != null; step = lane.next()) {
        if (step instanceof PlanStep.Deliver deliver) {
          if (deliver.step() >= steps) {
            break;
          }
          if (!deliver.repeat()) {
            delivered[(int) (deliver.sample() >>> 6)] |= 1L << deliver.sample();
          }
        }
      }
    }
    return inputs.samples().without(delivered);
  }
}
