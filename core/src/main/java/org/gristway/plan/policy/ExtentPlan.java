package org.gristway.plan.policy;

import org.gristway.Failure;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;

/**
 * A plan whose lanes each have their share of frames, most of them to draw from and a few that only
 * load ahead.
 */
record ExtentPlan(PlanInputs inputs, long epoch, Deal deal, LaneMaker laneMaker)
    implements ReadPlan {

  /**
   * Frames that only load. With every frame drawable, those that are wanted soonest would be the
   * ones still loading, and the storage would see one request at a time.
   */
  private static final int MOST_LOADING = 8;

  /** Frames that only load do not mix: no more than this share of them. */
  private static final int LOADING_SHARE = 16;

  private static final int FEWEST_FRAMES = 2;

  /** Makes the lane of a rank. */
  interface LaneMaker {
    PlanSteps make(ExtentPlan plan, int rank);
  }

  static ExtentPlan of(PlanInputs inputs, long epoch, LaneMaker laneMaker) {
    refuseTooFewFrames(inputs, FEWEST_FRAMES);
    return new ExtentPlan(inputs, epoch, new Deal(inputs, epoch), laneMaker);
  }

  static void refuseTooFewFrames(PlanInputs inputs, int fewest) {
    PlanSettings settings = inputs.settings();
    if (settings.frames() < fewest) {
      int ranks = inputs.world().mostRanks();
      throw Failure.wrongCall(
          "the memory is too small for policy '%s': give it %d or more (each rank on a machine takes"
              + " at least %d of %d bytes), or make the extents smaller",
          settings.policy(),
          fewest * settings.extentBytes() * ranks,
          fewest,
          settings.extentBytes());
    }
  }

  /**
   * Frames of a lane: as many as the memory has, but no more than could ever hold something of an
   * epoch and the next.
   */
  @Override
  public int laneFrames() {
    // Of the whole dataset, so that it is the same in every epoch and segment of a run.
    int ranks = inputs.world().ranks();
    long samples = Math.ceilDiv(inputs.layout().sampleCount(), ranks);
    long useful = 2 * Math.min(inputs.cuts().count(), samples + inputs.settings().batchSize()) + 1;
    long possible = Integer.MAX_VALUE / inputs.world().mostRanks();
    return (int) Math.min(inputs.settings().frames(), Math.min(useful, possible));
  }

  /** Frames of a lane that samples may be drawn from at the same time. */
  int drawable() {
    int frames = inputs.settings().frames();
    return frames - Math.clamp(frames / LOADING_SHARE, 1, MOST_LOADING);
  }

  @Override
  public PlanSteps lane(int rank, boolean cold) {
    return laneMaker.make(this, rank);
  }
}
