package org.gristway.plan.policy;

import org.gristway.plan.ReadPlan;

/** A plan of a policy that caches: its lanes have a few frames, and keep samples in the rest. */
interface StagedPlan extends ReadPlan {

  Staging staging();

  @Override
  default int laneFrames() {
    return staging().frames();
  }

  @Override
  default long frameBytes() {
    return staging().frameBytes();
  }

  @Override
  default long residentBytes() {
    return staging().residentBytes(inputs().world().mostRanks());
  }
}
