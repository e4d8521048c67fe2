package org.gristway.cli;

import org.gristway.plan.policy.ChunkShufflePolicy;
import org.gristway.plan.policy.RedirectPolicy;

/**
 * Settings that were tried, and what came of it.
 *
 * @param memory of a node
 * @param share of the dataset that the memory of all nodes holds
 * @param stallShare what a trainer waits of an epoch, once the first is over
 * @param firstEpochStall seconds that it waits in the first
 */
record Candidate(
    String policy,
    long memory,
    long extentBytes,
    double share,
    double stallShare,
    double firstEpochStall) {

  boolean removesStall() {
    return stallShare < Recommender.NO_STALL;
  }

  /** True if the samples of a batch have nothing to do with each other. */
  boolean isFullShuffle() {
    return !isDrawn(policy);
  }

  /** True if it is a full shuffle, or one that training takes for one. */
  boolean mixes() {
    return mixes(policy, share);
  }

  static boolean mixes(String policy, double share) {
    return !isDrawn(policy) || share >= Recommender.ENOUGH_TO_MIX;
  }

  /** True if samples are drawn from what is in memory; else they come in the requested order. */
  static boolean isDrawn(String policy) {
    return policy.equals(RedirectPolicy.NAME) || policy.equals(ChunkShufflePolicy.NAME);
  }
}
