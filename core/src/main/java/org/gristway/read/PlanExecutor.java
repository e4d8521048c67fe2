package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.gristway.Failure;
import org.gristway.chunk.Extent;
import org.gristway.chunk.LittleEndian;
import org.gristway.handover.AreaQueue;
import org.gristway.handover.BatchLayout;
import org.gristway.handover.Handover;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanStep;
import org.gristway.plan.SampleSet;
import org.gristway.plan.StepSource;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * Carries out the plan of one lane: has extents loaded ahead into frames, and copies each delivered
 * sample from its frame into its batch, verifying its checksum on the way. Where extents stay to
 * the end of the run, a batch points to its samples in place of having copies. What the plan has
 * other ranks deliver is pushed to them, and what they push is delivered here. What it has kept for
 * later epochs is put into the node's cache, and fetched from there into frames.
 *
 * <p>The plan's order is the schedule. A load stands where its frame is free, so it is passed on to
 * the storage at once; a delivery waits for its extent; a batch waits for an area, which is how a
 * slow trainer holds everything back. A frame is free once its last sample is copied, whatever
 * trainers do.
 *
 * <p>For one thread. Next on the way from file to tensor: {@link Handover}, where the batches go.
 */
public final class PlanExecutor {

  /** Copied and then checked while it is still in the processor's cache. */
  private static final long BLOCK = 32 << 10;

  private static final long NONE = -1;

  private final StepSource run;
  private final Snapshot snapshot;
  private final LaneFrames frames;
  private final SecondLook secondLook;
  private final Tallies tallies;
  private final Handover handover;
  private final Handover.RankAreas areas;
  private final long[] verified; // a bit a sample, of those that stay
  private final StandIns standIns;
  private final LanePost post;
  private final LaneCache cache;
  private final CRC32C checksum = new CRC32C();

  private final List<PlanStep> steps = new ArrayList<>(); // of the batch at hand
  private final ArrayDeque<Long> loadEpochs = new ArrayDeque<>(); // of the loads among them
  private final ArrayDeque<Optional<Place.Straight>> sends = new ArrayDeque<>(); // of the pushes
  private final List<Place> places = new ArrayList<>();
  private long epoch; // of the batch at hand
  private long used; // bytes of its area
  private long areaBytes; // of all areas of the lane, as counted
  private @Nullable PlanStep pushedBack; // the first delivery of the batch after
  private Place.@Nullable Straight straight; // the read that the next delivery, or push, needs
  private PlanStep.@Nullable Receive received; // what the next delivery is of
  private long entered = NONE; // the epoch that comes behind the batch at hand

  PlanExecutor(
      int lane,
      StepSource run,
      Snapshot snapshot,
      LaneFrames frames,
      SecondLook secondLook,
      Tallies tallies,
      Handover handover,
      SampleSet standIns,
      Post post,
      LaneCache cache) {
    this.run = run;
    this.snapshot = snapshot;
    this.frames = frames;
    this.secondLook = secondLook;
    this.tallies = tallies;
    this.handover = handover;
    this.areas = handover.rank(lane);
    this.verified =
        new long[handover.resident().byteSize() == 0 ? 0 : (int) (snapshot.sampleCount() >> 6) + 1];
    this.standIns = new StandIns(snapshot, standIns, secondLook, tallies);
    this.post = new LanePost(post, tallies);
    this.cache = cache;
  }

  /**
   * Builds the batch of the next {@code count} steps of the plan, fewer at the end of an epoch, in
   * an area of its own; the area, or {@link AreaQueue#NONE} when the run or the handover has ended,
   * or {@link AreaQueue#ALL_TAKEN} where nobody waits for memory and there is none.
   *
   * @throws Failure if the data is damaged and that is not accepted, or the storage is out of reach
   */
  int build(int count) throws InterruptedException {
    gather(count);
    if (places.isEmpty()) {
      return AreaQueue.NONE;
    }
    boolean inPlace = pointsAtResident();
    used = inPlace ? BatchLayout.dataAt(places.size()) : layOut();
    long start = System.nanoTime();
    int area = areas.claim(used);
    tallies.add(ReadCounter.TRAINER_WAIT_NANOS, System.nanoTime() - start);
    if (area < 0) {
      return area;
    }
    boolean built = false;
    try {
      MemorySegment memory = room(area, used);
      if (!inPlace) {
        startStraightLoads(memory);
        fill(memory);
        used = standIns.replace(places, used, memory, epoch, bytes -> room(area, bytes));
        memory = areas.memory(area);
      }
      describe(memory, inPlace ? BatchLayout.RESIDENT : 0);
      built = true;
      tellDone();
      return area;
    } finally {
      if (!built) {
        abandon(area);
      }
    }
  }

  /** Gives back the steps of a batch that was not built, as there is no memory for it. */
  List<AskedSteps.Undone> giveBack() {
    List<AskedSteps.Undone> undone = new ArrayList<>();
    int place = 0;
    for (PlanStep step : steps) {
      if (step instanceof PlanStep.Deliver) {
        Place.Straight read = places.get(place++).straight;
        if (read != null) {
          undone.add(new AskedSteps.Undone(read.load, epoch));
        }
      }
      boolean isLoad = step instanceof PlanStep.Load;
      undone.add(new AskedSteps.Undone(step, isLoad ? loadEpochs.remove() : epoch));
    }
    steps.clear();
    places.clear();
    return undone;
  }

  private MemorySegment room(int area, long bytes) {
    MemorySegment memory = areas.reserve(area, bytes);
    tallies.add(ReadCounter.HANDOVER_BYTES, areas.bytes() - areaBytes);
    areaBytes = areas.bytes();
    return memory;
  }

  /** Gives an area back, once no read goes to it any more. */
  private void abandon(int area) throws InterruptedException {
    for (Place place : places) {
      if (place.straight != null && place.straight.frame.isClaimed()) {
        place.straight.frame.await();
      }
    }
    areas.queue().abandon(area);
  }

  /** Collects the steps up to the end of the batch. */
  private void gather(int count) throws InterruptedException {
    steps.clear();
    places.clear();
    int batchSteps = 0;
    long batchStep = NONE;
    while (true) {
      PlanStep step = pushedBack != null ? pushedBack : run.next();
      pushedBack = null;
      switch (step) {
        case null -> {
          post.sendOff();
          return;
        }
        case PlanStep.Deliver deliver -> {
          post.sendOff();
          if (deliver.step() != batchStep) {
            if (batchSteps == count) {
              pushedBack = deliver;
              return;
            }
            batchStep = deliver.step();
            batchSteps++;
          }
          epoch = run.epoch();
          places.add(new Place(deliver, straight, received));
          straight = null;
          received = null;
          steps.add(deliver);
        }
        case PlanStep.Load load when load.frame() == PlanStep.IN_BATCH ->
            straight = new Place.Straight(load);
        // Nothing has to be copied before this one: its frame is free now.
        case PlanStep.Load load when places.isEmpty() -> frames.load(load, run.epoch());
        case PlanStep.Load load -> {
          steps.add(load);
          loadEpochs.add(run.epoch());
        }
        case PlanStep.Fetch fetch when places.isEmpty() -> frames.fetch(fetch, run.epoch());
        case PlanStep.Drop drop when places.isEmpty() -> cache.drop(drop);
        // These stand in the epoch of the batch: nothing is fetched before its own epoch.
        case PlanStep.Fetch _, PlanStep.Keep _, PlanStep.Drop _ -> steps.add(step);
        case PlanStep.Release release when places.isEmpty() -> frames.release(release.frame());
        case PlanStep.Release release -> steps.add(release);
        // Before anything is waited for: others may wait for it.
        case PlanStep.Send send when places.isEmpty() -> push(send, takeStraight(), run.epoch());
        case PlanStep.Send send -> {
          if (batchSteps == count) {
            pushedBack = send; // the batch is not held up by what comes behind it
            return;
          }
          sends.add(Optional.ofNullable(takeStraight()));
          steps.add(send);
        }
        case PlanStep.Receive receive -> received = receive;
        case PlanStep.EpochEnd end -> {
          batchStep = NONE;
          entered = end.epoch() + 1;
          if (!places.isEmpty()) {
            return; // no batch is of two epochs
          }
          post.sendOff();
          tellDone();
        }
      }
    }
  }

  /**
   * Has every place show its sample where that stays; false if one is not there, or damaged. Each
   * is verified when it is shown first: nobody writes to it after that.
   */
  private boolean pointsAtResident() throws InterruptedException {
    if (verified.length == 0 || steps.size() != places.size()) {
      return false;
    }
    for (Place place : places) {
      if (place.deliver.frame() == PlanStep.IN_BATCH) {
        return false;
      }
      long sample = place.deliver.sample();
      Frame.Held held = frames.await(place.deliver.frame());
      if (!LaneFrames.isThere(held)) {
        return false;
      }
      MemorySegment bytes = frames.bytes(sample, held);
      place.offset = bytes.address() - handover.resident().address();
      place.length = bytes.byteSize();
      if (!isVerified(place)) {
        return false;
      }
    }
    return true;
  }

  private boolean isVerified(Place place) {
    long sample = place.deliver.sample();
    int word = (int) (sample >> 6);
    if ((verified[word] >>> sample & 1) == 0 && passes(place, handover.resident())) {
      verified[word] |= 1L << sample;
    }
    return (verified[word] >>> sample & 1) == 1;
  }

  /** Gives every place its stretch of the area; the bytes of all. */
  private long layOut() {
    long at = BatchLayout.dataAt(places.size());
    for (Place place : places) {
      place.length = snapshot.length(place.deliver.sample());
      if (place.straight != null) {
        // Page by page, as the file has it: a direct read begins and ends at a page.
        Extent extent = place.straight.load.extent();
        long page = ExtentCuts.pageEnd(at);
        place.offset = page + extent.offset() - ExtentCuts.pageOf(extent.offset());
        at = page + ExtentCuts.coveringBytes(extent);
      } else if (place.deliver.frame() == PlanStep.IN_BATCH) {
        place.original = earlier(place.deliver.sample());
        place.offset = place.original.offset;
      } else {
        place.offset = BatchLayout.aligned(at);
        at = place.offset + place.length;
      }
    }
    return at;
  }

  /** The place of the batch whose sample is repeated. */
  private Place earlier(long sample) {
    for (Place place : places) {
      if (place.deliver.sample() == sample) {
        return place;
      }
    }
    throw new IllegalStateException("sample " + sample + " is repeated but not in its batch");
  }

  private void startStraightLoads(MemorySegment memory) {
    // Each goes to the head of the queue, so the last is told first.
    for (Place place : places.reversed()) {
      if (place.straight != null) {
        frames.loadStraight(place.straight, memory, place.offset, epoch);
      }
    }
  }

  private void fill(MemorySegment memory) throws InterruptedException {
    int place = 0;
    for (PlanStep step : steps) {
      switch (step) {
        case PlanStep.Deliver deliver -> {
          post.sendOff();
          if (place > 0 && places.get(place - 1).deliver.step() != deliver.step()) {
            tellBefore(place);
          }
          deliver(places.get(place++), memory);
        }
        case PlanStep.Load load -> frames.load(load, loadEpochs.remove());
        case PlanStep.Fetch fetch -> frames.fetch(fetch, epoch);
        case PlanStep.Keep keep -> keep(keep, places.get(place - 1), memory);
        case PlanStep.Drop drop -> cache.drop(drop);
        case PlanStep.Release release -> frames.release(release.frame());
        case PlanStep.Send send -> {
          tellBefore(place);
          push(send, sends.remove().orElse(null), epoch);
        }
        default -> throw new IllegalStateException(step.toString());
      }
    }
    post.sendOff();
  }

  /** Keeps the sample of a place, as it has passed its checksum. */
  private void keep(PlanStep.Keep keep, Place place, MemorySegment memory) {
    if (!place.damaged) {
      cache.keep(keep, memory.asSlice(place.offset, place.length));
      frames.countResident(epoch);
    }
  }

  /** Tells that steps are over: others may wait for that, as this rank is about to for them. */
  private void tellBefore(int place) {
    post.done(epoch, places.get(place - 1).deliver.step());
  }

  private void deliver(Place place, MemorySegment memory) throws InterruptedException {
    MemorySegment target = memory.asSlice(place.offset, place.length);
    if (place.straight != null) {
      Failure unread = LaneFrames.failure(frames.await(place.straight.frame));
      boolean good = unread == null && passes(place, memory);
      place.damaged = !good && !arrives(place.deliver.sample(), target, epoch, unread);
    } else if (place.original != null) {
      place.damaged = place.original.damaged;
    } else if (place.received != null) {
      place.damaged = !takes(place.received, target);
    } else {
      long sample = place.deliver.sample();
      Frame.Held held = frames.await(place.deliver.frame());
      place.damaged =
          !copies(sample, held, target)
              && !arrives(sample, target, epoch, LaneFrames.failure(held));
    }
  }

  /** Copies a sample out of its frame; true if it is there and passes its checksum. */
  private boolean copies(long sample, Frame.Held held, MemorySegment target) {
    return LaneFrames.isThere(held) && copies(sample, frames.bytes(sample, held), target);
  }

  /** Copies a sample; true if it passes its checksum. */
  private boolean copies(long sample, MemorySegment source, MemorySegment target) {
    checksum.reset();
    for (long at = 0; at < target.byteSize(); at += BLOCK) {
      long count = Math.min(BLOCK, target.byteSize() - at);
      MemorySegment.copy(source, at, target, at, count);
      checksum.update(target.asSlice(at, count).asByteBuffer());
    }
    return (int) checksum.getValue() == snapshot.checksum(sample);
  }

  private Place.@Nullable Straight takeStraight() {
    Place.Straight taken = straight;
    straight = null;
    return taken;
  }

  /** Puts a sample into the parcel for its step. */
  private void push(PlanStep.Send send, Place.@Nullable Straight read, long ofEpoch)
      throws InterruptedException {
    Parcel parcel = post.outgoing(send, ofEpoch);
    long length = snapshot.length(send.sample());
    MemorySegment target = parcel.add(send.position(), send.sample(), length);
    Frame.Held held;
    boolean good;
    if (read == null) {
      held = frames.await(send.frame());
      good = copies(send.sample(), held, target);
    } else {
      good =
          frames.readStraight(
              read, send.sample(), bytes -> copies(send.sample(), bytes, target), ofEpoch);
      held = frames.await(read.frame);
    }
    if (!good && !arrives(send.sample(), target, ofEpoch, LaneFrames.failure(held))) {
      parcel.spoil();
    }
    tallies.add(ReadCounter.PUSHED, 1);
    tallies.add(ReadCounter.PUSHED_BYTES, length);
  }

  /** Copies what another rank has pushed; false if the sample is damaged. */
  private boolean takes(PlanStep.Receive take, MemorySegment target) throws InterruptedException {
    Parcel parcel = post.incoming(take, epoch);
    tallies.add(ReadCounter.RECEIVED, 1);
    int index = parcel.indexOf(take.position(), take.sample());
    if (parcel.length(index) == Parcel.DAMAGED) {
      return false; // whoever has read it has looked twice, and said so
    }
    if (parcel.length(index) != target.byteSize()
        || !copies(take.sample(), parcel.bytes(index), target)) {
      // Whoever pushes has checked it: the two do not read the same, or their memory is at fault.
      throw Failure.damaged(
          "sample '%s' fails its checksum as rank %d has pushed it: do all ranks read the same"
              + " dataset ('gristway info' shows its snapshot), and is the memory of both machines"
              + " sound?",
          snapshot.key(take.sample()), take.rank());
    }
    return true;
  }

  /** Lets others push for steps to come: those of the batch at hand are over. */
  private void tellDone() {
    if (entered != NONE) {
      post.done(entered, NONE);
      entered = NONE;
    } else if (!places.isEmpty()) {
      post.done(epoch, places.getLast().deliver.step());
    }
  }

  private boolean passes(Place place, MemorySegment memory) {
    return LittleEndian.checksum(memory.asSlice(place.offset, place.length))
        == snapshot.checksum(place.deliver.sample());
  }

  /** Looks again at a sample that is not as it was packed; false if it is damaged. */
  private boolean arrives(
      long sample, MemorySegment target, long ofEpoch, @Nullable Failure unread) {
    frames.distrust(sample);
    tallies.countRead(ofEpoch, target.byteSize(), true);
    return secondLook.arrives(sample, ofEpoch, target, unread);
  }

  /** Writes what the batch is. */
  private void describe(MemorySegment memory, int alwaysFlags) {
    frames.countResident(epoch);
    for (int i = 0; i < places.size(); i++) {
      Place place = places.get(i);
      PlanStep.Deliver deliver = place.deliver;
      Place shown = place.replacedBy == null ? place : place.replacedBy;
      long sample = shown.deliver.sample();
      int flags =
          alwaysFlags
              | (deliver.repeat() || place.damaged ? BatchLayout.REPEAT : 0)
              | (place.damaged ? BatchLayout.DAMAGED : 0)
              | (snapshot.shape(sample).size() > 1 ? BatchLayout.PARTS : 0);
      BatchLayout.writeRecord(
          memory,
          i,
          shown.offset,
          shown.length,
          sample,
          deliver.sample(),
          deliver.request(),
          snapshot.label(sample),
          flags);
    }
    standIns.noteGood(places);
    PlanStep.Deliver first = places.getFirst().deliver;
    BatchLayout.writeHeader(memory, epoch, first.step(), first.rank(), places.size(), used);
    BatchLayout.writeResident(memory, handover.residentOffset(), handover.resident().byteSize());
  }
}
