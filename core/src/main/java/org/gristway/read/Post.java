package org.gristway.read;

import org.jspecify.annotations.Nullable;

/**
 * How a rank pushes samples to others, and gets what they push to it. For the one thread of its
 * lane.
 *
 * <p>Each rank has room for what every other pushes for some steps ({@link
 * org.gristway.plan.Exchange#room}); whoever would push beyond that waits until the rank is {@link
 * #done} with a step. That is all that ranks ever wait for, and plans push in an order in which it
 * ends.
 */
public interface Post {

  /** For a rank that reads for itself alone. */
  Post NONE = new NoPost();

  /**
   * An empty parcel for what another rank delivers at a step, once that has room for it.
   *
   * @throws org.gristway.Failure (environment) if the rank's node is lost
   */
  Parcel begin(int to, long epoch, long step) throws InterruptedException;

  /** Sends a parcel, which is no longer the caller's. */
  void send(Parcel parcel);

  /** What another rank has pushed for a step, or null if it is not there yet. */
  @Nullable Parcel poll(int from, long epoch, long step);

  /**
   * What another rank has pushed for a step, once it is there. It stays until the step is done.
   *
   * @throws org.gristway.Failure (environment) if the rank's node is lost
   */
  Parcel await(int from, long epoch, long step) throws InterruptedException;

  /** Ends a step: nothing that was pushed for it, or for one before, is used any more. */
  void done(long epoch, long step);
}
