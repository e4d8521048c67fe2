package org.gristway.read;

import org.gristway.plan.ReadState;
import org.gristway.plan.SampleSet;
import org.jspecify.annotations.Nullable;

/**
 * Where a loader begins to read, and what.
 *
 * @param state of the run that it goes on with, or null for a new run
 * @param place in that run, or null for where the state was taken
 * @param samples to deliver, or null for all of the dataset
 * @param stepsAtOnce how many steps of the plan make a batch, fewer at an epoch's end; 0 if that is
 *     told with {@link Loader#start}, and nothing is read until then
 */
public record Beginning(
    @Nullable ReadState state,
    @Nullable Place place,
    @Nullable SampleSet samples,
    int stepsAtOnce) {

  /** A new run over the whole dataset. */
  public static final Beginning NEW_RUN = new Beginning(null, null, null, 1);

  /** A step of an epoch's plan. */
  public record Place(long epoch, long step) {}

  /** Where a state was taken. */
  public static Beginning at(@Nullable ReadState state) {
    return new Beginning(state, null, null, 1);
  }
}
