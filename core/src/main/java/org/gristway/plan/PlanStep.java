package org.gristway.plan;

import org.gristway.chunk.Extent;

/**
 * One thing that a node does in an epoch. The steps of a lane are carried out in their order, but
 * for loads, which run ahead: a {@code Load} stands at the first place where its frame is free.
 *
 * <p>A frame's number counts the frames of a node: lane i of n has its own stretch of them. Between
 * a frame's {@code Load} and its {@code Release} it holds one extent; its bytes count against the
 * budget all that time, so a plan that never has more frames than the budget allows keeps it by
 * construction.
 *
 * <p>{@code Fetch}, {@code Keep} and {@code Drop} are the words of plans that cache samples. What
 * is kept in an epoch, any rank may fetch in every later one before that in which it is dropped; in
 * that, the lane alone that drops it. {@code Send} and {@code Receive} are those of plans whose
 * ranks push samples to each other: to whom, when and from what frame is planned on every node
 * alike, so nobody asks for anything.
 *
 * <p>Next on the way from file to tensor: {@link org.gristway.plan.policy.RedirectPolicy}, which
 * decides on these steps.
 */
public sealed interface PlanStep {

  /** In place of a frame: straight into the batch's memory, for samples larger than a frame. */
  int IN_BATCH = -1;

  /** In place of a frame: where pushed samples wait for their delivery. */
  int RECEIVED = -2;

  /**
   * Reads an extent from the store.
   *
   * @param frame that it goes to, or {@link #IN_BATCH}; then its delivery, or the push to the rank
   *     that delivers it, is the next step
   * @param again true if the extent's bytes were read in this epoch before
   */
  record Load(Extent extent, int frame, boolean again) implements PlanStep {}

  /** Pushes a sample to another rank, which delivers it at the step and position. */
  record Send(long sample, int frame, int rank, long step, int position) implements PlanStep {}

  /** Takes a sample that another rank pushes; its delivery is the next step. */
  record Receive(long sample, int rank, long step, int position) implements PlanStep {}

  /** Reads a sample from a peer or a tier of this node's cache. */
  record Fetch(long sample, Source source, int frame) implements PlanStep {}

  /** Puts the sample that was delivered last into a tier of this node's cache. */
  record Keep(long sample, int tier) implements PlanStep {}

  /** Takes a sample that the lane has kept out of a tier, or {@link #ALL} of them. */
  record Drop(long sample, int tier) implements PlanStep {
    public static final long ALL = -1;
  }

  /**
   * Gives a sample to a rank.
   *
   * @param step of the segment, from 0: the batch
   * @param position in the batch, from 0
   * @param request the sample that a plain loader would give here; redirection is where it differs
   * @param sample that is given
   * @param frame that holds it; {@link #IN_BATCH} if it was read there, or is there already; {@link
   *     #RECEIVED} if another rank has pushed it
   * @param repeat true if the sample is not due here but fills a place that would be empty
   */
  record Deliver(
      long step, int position, int rank, long request, long sample, int frame, boolean repeat)
      implements PlanStep {}

  /** Ends a frame's extent: its last sample has been delivered. */
  record Release(int frame) implements PlanStep {}

  /** Ends the epoch for the lane. */
  record EpochEnd(long epoch) implements PlanStep {}

  /** Where a {@link Fetch} reads from: a tier of this node, or that tier of a peer. */
  record Source(int peer, int tier) {

    /** The node itself. */
    public static final int HERE = -1;
  }
}
