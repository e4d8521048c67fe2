package org.gristway.read;

import org.gristway.plan.PlanStep;
import org.jspecify.annotations.Nullable;

/** A place of a batch that is being built: which sample it delivers, and where its bytes are. */
final class Place {

  /** A read that goes past the frames: where it goes is known when its batch is laid out. */
  static final class Straight {
    final PlanStep.Load load;
    final Frame frame = new Frame();

    Straight(PlanStep.Load load) {
      this.load = load;
    }
  }

  final PlanStep.Deliver deliver;
  final @Nullable Straight straight; // if it is read here, past the frames
  final PlanStep.@Nullable Receive received; // if another rank pushes it
  @Nullable Place original; // the place whose bytes it shows, if it repeats one
  long offset;
  long length;
  boolean damaged;
  @Nullable Place replacedBy;

  Place(
      PlanStep.Deliver deliver, @Nullable Straight straight, PlanStep.@Nullable Receive received) {
    this.deliver = deliver;
    this.straight = straight;
    this.received = received;
  }
}
