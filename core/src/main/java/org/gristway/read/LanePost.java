package org.gristway.read;

import org.gristway.plan.PlanStep;
import org.jspecify.annotations.Nullable;

/**
 * The parcels of a lane: the one that it fills for another rank, and those that others have pushed
 * to it. It counts how long the lane waits for either, and what comes late. For one thread.
 */
final class LanePost {

  private final Post post;
  private final Tallies tallies;
  private @Nullable Parcel outgoing; // not sent yet
  private long doneEpoch = -1;
  private long doneStep = -1;

  LanePost(Post post, Tallies tallies) {
    this.post = post;
    this.tallies = tallies;
  }

  /** The parcel that a sample goes into: those of a rank and step follow each other. */
  Parcel outgoing(PlanStep.Send send, long epoch) throws InterruptedException {
    Parcel parcel = outgoing;
    if (parcel == null || parcel.to() != send.rank() || parcel.step() != send.step()) {
      sendOff();
      long start = System.nanoTime();
      parcel = post.begin(send.rank(), epoch, send.step());
      tallies.add(ReadCounter.PEER_WAIT_NANOS, System.nanoTime() - start);
      outgoing = parcel;
    }
    return parcel;
  }

  /** Sends what there is to send: to be called before the lane waits for anything else. */
  void sendOff() {
    Parcel parcel = outgoing;
    outgoing = null;
    if (parcel != null) {
      post.send(parcel);
    }
  }

  /** The parcel that a sample comes in, once it is there. */
  Parcel incoming(PlanStep.Receive take, long epoch) throws InterruptedException {
    Parcel parcel = post.poll(take.rank(), epoch, take.step());
    if (parcel == null) {
      long start = System.nanoTime();
      parcel = post.await(take.rank(), epoch, take.step());
      tallies.add(ReadCounter.PEER_WAIT_NANOS, System.nanoTime() - start);
      tallies.add(ReadCounter.LATE, parcel.count());
    }
    return parcel;
  }

  /** Lets others push for steps to come: this one is over. All are told once. */
  void done(long epoch, long step) {
    if (epoch != doneEpoch || step != doneStep) {
      doneEpoch = epoch;
      doneStep = step;
      post.done(epoch, step);
    }
  }
}
