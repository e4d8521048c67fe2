package org.gristway.cli;

import org.gristway.read.EpochReport;

/**
 * What came of an epoch.
 *
 * @param report of the loader
 * @param nanos from the end of the epoch before, or from the beginning, to the last batch
 * @param ranks that it was read by
 * @param orderDigest of {@link OrderDigest}
 */
record EpochResult(EpochReport report, long nanos, int ranks, String orderDigest) {

  double seconds() {
    return nanos / 1e9;
  }

  /** The time that a trainer waited for data, the mean over ranks. */
  double stallSeconds() {
    return report.stallNanos() / 1e9 / ranks;
  }
}
