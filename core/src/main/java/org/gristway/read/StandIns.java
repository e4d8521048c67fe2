package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.gristway.Failure;
import org.gristway.handover.BatchLayout;
import org.gristway.plan.PlanStep;
import org.gristway.plan.SampleSet;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * What batches show in place of damaged samples: the nearest good one of the batch, or, where all
 * of it is damaged, one from elsewhere. For the one thread of a lane.
 */
final class StandIns {

  /** Makes room for a batch of so many bytes: its memory, with what it held. */
  interface Room {
    MemorySegment reserve(long bytes);
  }

  private static final long NONE = -1;

  /** Samples that are tried in place of a batch that is damaged as a whole. */
  private static final int TRIES = 1000;

  private final Snapshot snapshot;
  private final SampleSet set;
  private final SecondLook secondLook;
  private final Tallies tallies;
  private long lastGood = NONE;

  /**
   * @param set of the samples that may be shown
   */
  StandIns(Snapshot snapshot, SampleSet set, SecondLook secondLook, Tallies tallies) {
    this.snapshot = snapshot;
    this.set = set;
    this.secondLook = secondLook;
    this.tallies = tallies;
  }

  /**
   * Has damaged places show good samples.
   *
   * @param used bytes of the batch's memory
   * @return the bytes of its memory that are used then
   * @throws Failure (damaged) if no sample can be read
   */
  long replace(List<Place> places, long used, MemorySegment memory, long epoch, Room room) {
    for (int i = 0; i < places.size(); i++) {
      Place place = places.get(i);
      if (place.damaged) {
        Place good = nearestGood(places, i);
        if (good == null) {
          return showOther(places, epoch, room);
        }
        if (place.original == null) {
          // Whoever looks at the area as one array finds no bytes that have failed.
          memory.asSlice(place.offset, place.length).fill((byte) 0);
          long common = Math.min(place.length, good.length);
          MemorySegment.copy(memory, good.offset, memory, place.offset, common);
        }
        place.replacedBy = good;
      }
    }
    return used;
  }

  /** Remembers the last good sample of a batch, for one that has none. */
  void noteGood(List<Place> places) {
    for (Place place : places.reversed()) {
      if (!place.damaged) {
        lastGood = place.deliver.sample();
        return;
      }
    }
  }

  private static @Nullable Place nearestGood(List<Place> places, int index) {
    for (int distance = 1; distance < places.size(); distance++) {
      if (index - distance >= 0 && !places.get(index - distance).damaged) {
        return places.get(index - distance);
      }
      if (index + distance < places.size() && !places.get(index + distance).damaged) {
        return places.get(index + distance);
      }
    }
    return null;
  }

  /** Has a batch of damaged samples alone show one from elsewhere: the last good one, if any. */
  private long showOther(List<Place> places, long epoch, Room room) {
    long bad = places.getFirst().deliver.sample();
    long after = set.rank(bad) + 1;
    for (int i = 0; i < TRIES; i++) {
      long sample = i == 0 && lastGood != NONE ? lastGood : set.nth((after + i) % set.count());
      Place other =
          new Place(
              new PlanStep.Deliver(0, 0, 0, sample, sample, PlanStep.IN_BATCH, true), null, null);
      other.offset = BatchLayout.dataAt(places.size());
      other.length = snapshot.length(sample);
      long used = other.offset + other.length;
      MemorySegment target = room.reserve(used).asSlice(other.offset, other.length);
      tallies.countRead(epoch, other.length, true);
      if (secondLook.isGood(sample, target)) {
        places.forEach(place -> place.replacedBy = other);
        return used;
      }
    }
    throw Failure.damaged(
        "no sample can be read in place of '%s' and others of its batch: 'gristway verify' tells what"
            + " is damaged",
        snapshot.key(bad));
  }
}
