package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
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
 * the end of the run, a batch points to its samples in place of having copies.
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

  /** Samples that are tried in place of a batch that is damaged as a whole. */
  private static final int STAND_IN_TRIES = 1000;

  private final int lane;
  private final StepSource run;
  private final Snapshot snapshot;
  private final FramePool pool;
  private final LoadQueue loads;
  private final SecondLook secondLook;
  private final Tallies tallies;
  private final Handover handover;
  private final Handover.RankAreas areas;
  private final long[] verified; // a bit a sample, of those that stay
  private final SampleSet standIns;
  private long lastGood = NONE;
  private final CRC32C checksum = new CRC32C();

  private final List<PlanStep> steps = new ArrayList<>(); // of the batch at hand
  private final ArrayDeque<Long> loadEpochs = new ArrayDeque<>(); // of the loads among them
  private final List<Place> places = new ArrayList<>();
  private long epoch; // of the batch at hand
  private long used; // bytes of its area
  private @Nullable PlanStep pushedBack; // the first delivery of the batch after
  private @Nullable Straight straight; // the read that the next delivery needs

  /** A place of the batch at hand. */
  private static final class Place {
    final PlanStep.Deliver deliver;
    final @Nullable Straight straight; // if it is read here, past the frames
    @Nullable Place original; // the place whose bytes it shows, if it repeats one
    long offset;
    long length;
    boolean damaged;
    @Nullable Place replacedBy;

    Place(PlanStep.Deliver deliver, @Nullable Straight straight) {
      this.deliver = deliver;
      this.straight = straight;
    }
  }

  /** A read that goes past the frames: where it goes is known when its batch is laid out. */
  private static final class Straight {
    final PlanStep.Load load;
    final Frame frame = new Frame();

    Straight(PlanStep.Load load) {
      this.load = load;
    }
  }

  PlanExecutor(
      int lane,
      StepSource run,
      Snapshot snapshot,
      FramePool pool,
      LoadQueue loads,
      SecondLook secondLook,
      Tallies tallies,
      Handover handover,
      SampleSet standIns) {
    this.lane = lane;
    this.run = run;
    this.snapshot = snapshot;
    this.pool = pool;
    this.loads = loads;
    this.secondLook = secondLook;
    this.tallies = tallies;
    this.handover = handover;
    this.areas = handover.rank(lane);
    this.verified =
        new long[handover.resident().byteSize() == 0 ? 0 : (int) (snapshot.sampleCount() >> 6) + 1];
    this.standIns = standIns;
  }

  /**
   * Builds the batch of the next {@code count} steps of the plan, fewer at the end of an epoch, in
   * an area of its own; the area, or {@link AreaQueue#NONE} when the run or the handover has ended.
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
    int area = areas.queue().claim();
    tallies.add(ReadCounter.TRAINER_WAIT_NANOS, System.nanoTime() - start);
    if (area == AreaQueue.NONE) {
      return area;
    }
    boolean built = false;
    try {
      MemorySegment memory = room(area, used);
      if (!inPlace) {
        startStraightLoads(memory);
        fill(memory);
        memory = replaceDamaged(area, memory);
      }
      describe(memory, inPlace ? BatchLayout.RESIDENT : 0);
      built = true;
      return area;
    } finally {
      if (!built) {
        abandon(area);
      }
    }
  }

  private MemorySegment room(int area, long bytes) {
    long before = areas.memory(area).byteSize();
    MemorySegment memory = areas.reserve(area, bytes);
    tallies.add(ReadCounter.HANDOVER_BYTES, memory.byteSize() - before);
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
  private void gather(int count) {
    steps.clear();
    places.clear();
    int batchSteps = 0;
    long batchStep = NONE;
    while (true) {
      PlanStep step = pushedBack != null ? pushedBack : run.next();
      pushedBack = null;
      switch (step) {
        case null -> {
          return;
        }
        case PlanStep.Deliver deliver -> {
          if (deliver.step() != batchStep) {
            if (batchSteps == count) {
              pushedBack = deliver;
              return;
            }
            batchStep = deliver.step();
            batchSteps++;
          }
          epoch = run.epoch();
          places.add(new Place(deliver, straight));
          straight = null;
          steps.add(deliver);
        }
        case PlanStep.Load load when load.frame() == PlanStep.IN_BATCH ->
            straight = new Straight(load);
        // Nothing has to be copied before this one: its frame is free now.
        case PlanStep.Load load when places.isEmpty() -> load(load, run.epoch());
        case PlanStep.Load load -> {
          steps.add(load);
          loadEpochs.add(run.epoch());
        }
        case PlanStep.Release release -> steps.add(release);
        case PlanStep.EpochEnd _ -> {
          batchStep = NONE;
          if (!places.isEmpty()) {
            return; // no batch is of two epochs
          }
        }
        default -> throw new IllegalStateException("this node has no peers and no cache: " + step);
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
      Frame.Held held = await(pool.frame(place.deliver.frame()));
      if (held.failure() != null) {
        return false;
      }
      long from = snapshot.offsetIn(held.pages().chunk(), sample) - held.pages().offset();
      long frameAt = held.memory().address() - handover.resident().address();
      place.offset = frameAt + from;
      place.length = snapshot.length(sample);
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
        PlanStep.Load load = place.straight.load;
        Frame frame = place.straight.frame;
        Extent pages = pages(load.extent());
        long page = place.offset - (load.extent().offset() - pages.offset());
        MemorySegment target = memory.asSlice(page, ExtentCuts.coveringBytes(load.extent()));
        frame.claim(pages, target);
        count(tallies.epoch(epoch), pages.length(), load.again());
        loads.submitFirst(lane, new LoadQueue.Load(pages, target, frame::loaded));
      }
    }
  }

  private void load(PlanStep.Load load, long loadEpoch) {
    Extent pages = pages(load.extent());
    MemorySegment target = pool.claim(load.frame(), pages);
    tallies.epoch(loadEpoch).peakResident.accumulate(pool.residentBytes());
    tallies.add(ReadCounter.RESIDENT_BYTES, target.byteSize());
    count(tallies.epoch(loadEpoch), pages.length(), load.again());
    Frame frame = pool.frame(load.frame());
    loads.submit(lane, new LoadQueue.Load(pages, target, frame::loaded));
  }

  private void count(EpochTally tally, long bytes, boolean again) {
    tally.storageReads.increment();
    tally.storageBytes.add(bytes);
    tallies.add(ReadCounter.STORAGE_READS, 1);
    tallies.add(ReadCounter.STORAGE_BYTES, bytes);
    if (again) {
      tally.rereadBytes.add(bytes);
      tallies.add(ReadCounter.REREAD_BYTES, bytes);
    }
  }

  /** The pages that an extent touches, up to the end of its chunk's file. */
  private Extent pages(Extent extent) {
    long start = ExtentCuts.pageOf(extent.offset());
    long end =
        Math.min(
            ExtentCuts.pageEnd(extent.offset() + extent.length()),
            snapshot.chunkFileBytes(extent.chunk()));
    return new Extent(extent.chunk(), start, end - start);
  }

  private void fill(MemorySegment memory) throws InterruptedException {
    int place = 0;
    for (PlanStep step : steps) {
      switch (step) {
        case PlanStep.Deliver _ -> deliver(places.get(place++), memory);
        case PlanStep.Load load -> load(load, loadEpochs.remove());
        case PlanStep.Release release -> release(release.frame());
        default -> throw new IllegalStateException(step.toString());
      }
    }
  }

  private void release(int frame) {
    tallies.add(ReadCounter.RESIDENT_BYTES, -pool.release(frame));
  }

  private void deliver(Place place, MemorySegment memory) throws InterruptedException {
    if (place.straight != null) {
      Frame.Held held = await(place.straight.frame);
      boolean good = held.failure() == null && passes(place, memory);
      place.damaged = !good && !arrives(place, memory, held);
    } else if (place.original != null) {
      place.damaged = place.original.damaged;
    } else {
      Frame.Held held = await(pool.frame(place.deliver.frame()));
      boolean good = held.failure() == null && copies(place, held, memory);
      place.damaged = !good && !arrives(place, memory, held);
    }
  }

  private Frame.Held await(Frame frame) throws InterruptedException {
    Frame.Held held = frame.held();
    if (held == null) {
      long start = System.nanoTime();
      held = frame.await();
      tallies.add(ReadCounter.STORAGE_WAIT_NANOS, System.nanoTime() - start);
    }
    return held;
  }

  /** Copies a sample out of its frame; true if it passes its checksum. */
  private boolean copies(Place place, Frame.Held held, MemorySegment memory) {
    long sample = place.deliver.sample();
    Extent pages = held.pages();
    long from = snapshot.offsetIn(pages.chunk(), sample) - pages.offset();
    MemorySegment source = held.memory();
    checksum.reset();
    for (long at = 0; at < place.length; at += BLOCK) {
      long count = Math.min(BLOCK, place.length - at);
      MemorySegment.copy(source, from + at, memory, place.offset + at, count);
      checksum.update(memory.asSlice(place.offset + at, count).asByteBuffer());
    }
    return (int) checksum.getValue() == snapshot.checksum(sample);
  }

  private boolean passes(Place place, MemorySegment memory) {
    return LittleEndian.checksum(memory.asSlice(place.offset, place.length))
        == snapshot.checksum(place.deliver.sample());
  }

  private boolean arrives(Place place, MemorySegment memory, Frame.Held held) {
    // Whatever kept the extent from being read, the second look tells what it means for a sample.
    switch (held.failure()) {
      case null -> {}
      case Failure _ -> {}
      case RuntimeException bug -> throw bug;
      case Error error -> throw error;
      case Throwable other -> throw new IllegalStateException(other);
    }
    count(tallies.epoch(epoch), place.length, true);
    return secondLook.arrives(place.deliver.sample(), memory.asSlice(place.offset, place.length));
  }

  /** Has damaged places show the nearest good sample of the batch; the memory it is in. */
  private MemorySegment replaceDamaged(int area, MemorySegment memory) {
    for (int i = 0; i < places.size(); i++) {
      Place place = places.get(i);
      if (place.damaged) {
        Place good = nearestGood(i);
        if (good == null) {
          return showStandIn(area);
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
    return memory;
  }

  private @Nullable Place nearestGood(int index) {
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
  private MemorySegment showStandIn(int area) {
    long bad = places.getFirst().deliver.sample();
    long after = standIns.rank(bad) + 1;
    for (int i = 0; i < STAND_IN_TRIES; i++) {
      long sample =
          i == 0 && lastGood != NONE ? lastGood : standIns.nth((after + i) % standIns.count());
      Place standIn =
          new Place(new PlanStep.Deliver(0, 0, 0, sample, sample, PlanStep.IN_BATCH, true), null);
      standIn.offset = BatchLayout.dataAt(places.size());
      standIn.length = snapshot.length(sample);
      MemorySegment memory = room(area, standIn.offset + standIn.length);
      MemorySegment target = memory.asSlice(standIn.offset, standIn.length);
      count(tallies.epoch(epoch), standIn.length, true);
      if (secondLook.isGood(sample, target)) {
        places.forEach(place -> place.replacedBy = standIn);
        used = standIn.offset + standIn.length;
        return memory;
      }
    }
    throw Failure.damaged(
        "no sample can be read in place of '%s' and others of its batch: 'gristway verify' tells what"
            + " is damaged",
        snapshot.key(bad));
  }

  /** Writes what the batch is. */
  private void describe(MemorySegment memory, int alwaysFlags) {
    tallies.epoch(epoch).peakResident.accumulate(pool.residentBytes());
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
      if (!place.damaged) {
        lastGood = sample;
      }
    }
    PlanStep.Deliver first = places.getFirst().deliver;
    BatchLayout.writeHeader(memory, epoch, first.step(), first.rank(), places.size(), used);
    BatchLayout.writeResident(memory, handover.residentOffset(), handover.resident().byteSize());
  }
}
