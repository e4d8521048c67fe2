package org.gristway.cli;

import org.gristway.plan.LabelMix;
import org.gristway.plan.Quality;
import org.jspecify.annotations.Nullable;

/**
 * What was measured of an epoch's order, and what can be seen of it.
 *
 * @param rankCorrelation with the order of the next epoch
 * @param labels null if the dataset has no two labels to mix
 * @param mates in global batches, relative to chance, over the epoch
 * @param places of samples in storage against those in the epoch, both in percent
 * @param extents where in the epoch, in percent, the samples of a few extents come: a row each
 * @param rows how many extents those are
 */
record OrderMeasures(
    Quality.Report quality,
    double rankCorrelation,
    LabelMix.@Nullable Report labels,
    Points mates,
    Points places,
    Points extents,
    int rows) {}
