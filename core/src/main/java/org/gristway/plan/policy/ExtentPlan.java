package org.gristway.plan.policy;

import org.gristway.Failure;
import org.gristway.plan.Homes;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;

/**
 * A plan whose ranks each have their share of frames, most of them to draw from and a few that only
 * load ahead.
 */
final class ExtentPlan implements ReadPlan {

  /**
   * Frames that only load. With every frame drawable, those that are wanted soonest would be the
   * ones still loading, and the storage would see one request at a time.
   */
  private static final int MOST_LOADING = 8;

  /** Frames that only load do not mix: no more than this share of them. */
  private static final int LOADING_SHARE = 16;

  private static final int FEWEST_FRAMES = 2;

  /** Makes the pool of a rank, from which a policy draws as it does. */
  interface PoolMaker {
    ExtentPool make(ExtentPlan plan, int rank);
  }

  private final PlanInputs inputs;
  private final long epoch;
  private final Deal deal;
  private final PoolMaker poolMaker;
  private final ExchangeDraws draws; // that lanes share

  private ExtentPlan(PlanInputs inputs, long epoch, PoolMaker poolMaker) {
    this.inputs = inputs;
    this.epoch = epoch;
    this.deal = Deal.of(inputs, epoch);
    this.poolMaker = poolMaker;
    this.draws = new ExchangeDraws(this);
  }

  static ExtentPlan of(PlanInputs inputs, long epoch, PoolMaker poolMaker) {
    refuseTooFewFrames(inputs, FEWEST_FRAMES);
    return new ExtentPlan(inputs, epoch, poolMaker);
  }

  static void refuseTooFewFrames(PlanInputs inputs, int fewest) {
    PlanSettings settings = inputs.settings();
    if (settings.frames() < fewest) {
      throw Failure.wrongCall(
          "the memory is too small for policy '%s': give it %d or more for each rank on a machine (%d"
              + " of %d bytes, and a rank has %d), or make the extents smaller",
          settings.policy(),
          fewest * settings.extentBytes(),
          fewest,
          settings.extentBytes(),
          settings.memory());
    }
  }

  @Override
  public PlanInputs inputs() {
    return inputs;
  }

  @Override
  public long epoch() {
    return epoch;
  }

  Deal deal() {
    return deal;
  }

  /**
   * Frames of a lane: as many as the memory has, but no more than could ever hold something of an
   * epoch and the next.
   */
  @Override
  public int laneFrames() {
    // Of the whole dataset, so that it is the same in every epoch and segment of a run.
    long useful = 2 * Math.min(inputs.cuts().count(), mostSamples()) + 1;
    long possible = Integer.MAX_VALUE / inputs.world().mostRanks();
    return (int) Math.min(inputs.settings().frames(), Math.min(useful, possible));
  }

  /** The most samples that a rank may have to read: all, where extents have homes. */
  private long mostSamples() {
    long all = inputs.layout().sampleCount();
    return inputs.settings().exchange().homes() == Homes.AFRESH
        ? Math.ceilDiv(all, inputs.world().ranks()) + inputs.settings().batchSize()
        : all;
  }

  /** Frames of a lane that samples may be drawn from at the same time. */
  int drawable() {
    int frames = inputs.settings().frames();
    return frames - Math.clamp(frames / LOADING_SHARE, 1, MOST_LOADING);
  }

  ExtentPool pool(int rank) {
    return poolMaker.make(this, rank);
  }

  @Override
  public PlanSteps lane(int rank, boolean cold) {
    boolean mixes = inputs.settings().exchange().share() > 0 && inputs.world().ranks() > 1;
    return mixes ? new ExchangeLane(this, rank, draws) : new ExtentLane(this, rank);
  }
}
