package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.util.function.Predicate;
import org.gristway.Failure;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.os.PrivateMemory;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanStep;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * Has what a lane delivers read ahead of need: into its frames, or past them to where it goes. For
 * the lane's thread; the reading itself is done by those of the queue.
 */
final class LaneFrames {

  private final int lane;
  private final Snapshot snapshot;
  private final MemoryBudget budget;
  private final FramePool pool;
  private final Storage store;
  private final LoadQueue loads;
  private final LaneCache cache;
  private final Tallies tallies;

  LaneFrames(
      int lane,
      Snapshot snapshot,
      MemoryBudget budget,
      FramePool pool,
      Storage store,
      LoadQueue loads,
      LaneCache cache,
      Tallies tallies) {
    this.lane = lane;
    this.snapshot = snapshot;
    this.budget = budget;
    this.pool = pool;
    this.store = store;
    this.loads = loads;
    this.cache = cache;
    this.tallies = tallies;
  }

  /** Has an extent read into its frame, which is free. */
  void load(PlanStep.Load load, long epoch) {
    fill(load.frame(), pages(load.extent()), store.reading(epoch, load.again()), epoch);
  }

  /** Has a kept sample put into its frame, which is free. */
  void fetch(PlanStep.Fetch fetch, long epoch) {
    Extent pages = pages(snapshot.location(fetch.sample()));
    fill(fetch.frame(), pages, cache.fetching(fetch, epoch), epoch);
  }

  private void fill(int number, Extent pages, ChunkSource source, long epoch) {
    MemorySegment target = pool.claim(number, pages);
    countResident(epoch);
    tallies.add(ReadCounter.RESIDENT_BYTES, target.byteSize());
    Frame frame = pool.frame(number);
    loads.submit(lane, new LoadQueue.Load(source, pages, target, frame::loaded));
  }

  /** Has an extent read past the frames, before anything that waits to be read. */
  private void loadStraight(Place.Straight read, MemorySegment target, long epoch) {
    Extent pages = pages(read.load.extent());
    read.frame.claim(pages, target);
    ChunkSource source = store.reading(epoch, read.load.again());
    loads.submitFirst(lane, new LoadQueue.Load(source, pages, target, read.frame::loaded));
  }

  /**
   * Has a sample read to where its batch shows it.
   *
   * @param at where the sample is to be in the memory, as far behind a page as in its file
   */
  void loadStraight(Place.Straight read, MemorySegment memory, long at, long epoch) {
    Extent extent = read.load.extent();
    long page = at - (extent.offset() - ExtentCuts.pageOf(extent.offset()));
    loadStraight(read, memory.asSlice(page, ExtentCuts.coveringBytes(extent)), epoch);
  }

  /**
   * Reads a sample past the frames, into memory of its own.
   *
   * @param copies what to do with its bytes while they are there
   * @return what that says; false if they could not be read
   */
  boolean readStraight(
      Place.Straight read, long sample, Predicate<MemorySegment> copies, long epoch) {
    long bytes = Math.max(1, ExtentCuts.coveringBytes(read.load.extent())); // a sample may be empty
    try (PrivateMemory memory = FramePool.map(bytes)) {
      loadStraight(read, memory.segment(), epoch);
      Frame.Held held = read.frame.awaitThrough(); // it is this memory that is written to
      return isThere(held) && copies.test(bytes(sample, held));
    }
  }

  /** What a frame holds, once that is read. */
  Frame.Held await(int number) throws InterruptedException {
    return await(pool.frame(number));
  }

  Frame.Held await(Frame frame) throws InterruptedException {
    Frame.Held held = frame.held();
    if (held == null) {
      long start = System.nanoTime();
      held = frame.await();
      tallies.add(ReadCounter.STORAGE_WAIT_NANOS, System.nanoTime() - start);
    }
    return held;
  }

  void release(int frame) {
    tallies.add(ReadCounter.RESIDENT_BYTES, -pool.release(frame));
  }

  /** The bytes of a sample in a frame. */
  MemorySegment bytes(long sample, Frame.Held held) {
    Extent pages = held.pages();
    long from = snapshot.offsetIn(pages.chunk(), sample) - pages.offset();
    return held.memory().asSlice(from, snapshot.length(sample));
  }

  /** False if an extent could not be read; why, {@link #failure} says. */
  static boolean isThere(Frame.Held held) {
    return failure(held) == null;
  }

  /**
   * Why an extent could not be read; null if it was. A second look tells what it means for a
   * sample; unless it is a bug, which is thrown.
   */
  static @Nullable Failure failure(Frame.Held held) {
    return switch (held.failure()) {
      case null -> null;
      case Failure failure -> failure;
      case RuntimeException bug -> throw bug;
      case Error error -> throw error;
      case Throwable other -> throw new IllegalStateException(other);
    };
  }

  /** Has nobody rely on what was read of a sample. */
  void distrust(long sample) {
    store.distrust(pages(snapshot.location(sample)));
  }

  /** Notes how much memory is in use. */
  void countResident(long epoch) {
    tallies.epoch(epoch).peakResident.accumulate(budget.resident());
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
}
