package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.chunk.FolderChunkStore;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.handover.Handover;
import org.gristway.handover.HandoverRoom;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.SampleSet;
import org.gristway.plan.StepSource;
import org.gristway.plan.policy.Policies;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * All that plans are carried out with: the store, the frames, the threads that read, the handover
 * and the counters. It owns them; the dataset stays its opener's, who is told when nothing uses it
 * any more.
 *
 * <p>Any thread may call. What is asked for after {@link #close} is refused, never a crash: memory
 * is unmapped only when no batch is open.
 */
final class Engine implements AutoCloseable {

  private static final System.Logger LOG = System.getLogger(Loader.class.getName());

  private final Dataset dataset;
  private final SampleSet samples;
  private final long memoryBytes;
  private final Patience patience;
  private final SecondLook secondLook;
  private final MemoryBudget budget;
  private final FramePool pool;
  private final Storage store;
  private final SampleCache cache;
  private final LoadQueue loads;
  private final Tallies tallies;
  private final Handover handover;
  private final Set<Batch> inUse = new HashSet<>();
  private final Deque<Runnable> closings = new ArrayDeque<>(); // but of what batches need
  private Runnable whenUnused = () -> {};
  private boolean retired;
  private boolean closed;

  /**
   * @param plan one of those that will be carried out: all have the same frames
   * @param samples that may be delivered
   * @param rooms in the handover, of each lane
   * @param areas of each lane there
   * @param store where extents are read from; it is closed with the engine
   * @param threads that read
   */
  Engine(
      Dataset dataset,
      LoaderOptions options,
      ReadPlan plan,
      SampleSet samples,
      List<HandoverRoom> rooms,
      int areas,
      FolderChunkStore store,
      Threads threads,
      Consumer<String> notices) {
    opened(store);
    this.dataset = dataset;
    this.samples = samples;
    this.memoryBytes = residentBytes(plan, options);
    this.budget = new MemoryBudget(memoryBytes);
    Snapshot snapshot = dataset.snapshot();
    this.patience = new Patience(dataset.path(), options.storageTimeout(), notices);
    this.tallies = new Tallies();
    try {
      this.handover = new Handover(areas, plan.staysResident() ? plan.residentBytes() : 0, rooms);
    } catch (Throwable thrown) {
      tallies.close();
      throw thrown;
    }
    try {
      FolderChunkStore cached = opened(new FolderChunkStore(dataset.path(), snapshot));
      this.secondLook = new SecondLook(snapshot, cached, patience, damageLimit(options, notices));
      this.pool =
          opened(new FramePool(plan.frames(), plan.frameBytes(), budget, handover.resident()));
      CacheFile file = opened(new CacheFile(cacheFolder(options), notices));
      Storage counted = new CountedStore(store, tallies);
      this.store =
          keepsExtents(options)
              ? opened(new ExtentCache(counted, options.cache(), budget, tallies, file))
              : counted;
      this.cache = opened(new SampleCache(snapshot, budget, tallies, file));
      long limit = rooms.stream().mapToLong(HandoverRoom::most).sum();
      tallies.add(ReadCounter.HANDOVER_LIMIT_BYTES, limit);
      this.loads = opened(new LoadQueue(rooms.size(), options.threads(), threads, patience));
    } catch (Throwable thrown) {
      close();
      throw thrown;
    }
  }

  /** What is too much damage in the share of an epoch that is delivered here. */
  private DamageLimit damageLimit(LoaderOptions options, Consumer<String> notices) {
    long here = samples.count() * options.ranks() / options.world().ranks();
    return new DamageLimit(
        dataset.path(), dataset.snapshot(), here, options.mostDamaged(here), notices);
  }

  /** True if a cache is for extents; policies that keep samples plan what is in it. */
  private static boolean keepsExtents(LoaderOptions options) {
    return !options.cache().isNone() && !Policies.named(options.policy()).caches();
  }

  /** Where that is kept which is on disk; null if nothing is. */
  private static @Nullable Path cacheFolder(LoaderOptions options) {
    return options.cache().disk() == 0 ? null : options.cache().folder();
  }

  /** Has something closed before all that was opened earlier. */
  private <T extends AutoCloseable> T opened(T resource) {
    closings.push(
        () -> {
          try {
            resource.close();
          } catch (Exception unexpected) {
            throw new IllegalStateException(unexpected);
          }
        });
    return resource;
  }

  /** The memory that frames will take, and what is kept in memory. */
  static long residentBytes(ReadPlan plan, LoaderOptions options) {
    // More than there can be is as good as too much, and must not become less than nothing.
    return plan.residentBytes() + Math.min(options.cache().memory(), Long.MAX_VALUE >> 2);
  }

  /** Where notices go that nobody else takes. */
  static void log(String line) {
    LOG.log(System.Logger.Level.WARNING, line);
  }

  /** Stops trying reads again: nobody waits for them. */
  void tryOnce() {
    patience.end();
    loads.tryOnce();
  }

  /** What carries a lane's steps out. */
  PlanExecutor executor(int lane, StepSource steps, Post post, PeerCaches peers) {
    Snapshot snapshot = dataset.snapshot();
    LaneCache kept = new LaneCache(lane, snapshot, cache, peers, store, tallies);
    LaneFrames frames = new LaneFrames(lane, snapshot, budget, pool, store, loads, kept, tallies);
    return new PlanExecutor(
        lane, steps, snapshot, frames, secondLook, tallies, handover, samples, post, kept);
  }

  /** Copies a sample that is kept in a tier; false if it is not there. */
  boolean copyKept(long sample, int tier, MemorySegment target) {
    return cache.copy(sample, tier, target);
  }

  Handover.RankAreas areas(int lane) {
    return handover.rank(lane);
  }

  Tallies tallies() {
    return tallies;
  }

  long memoryBytes() {
    return memoryBytes;
  }

  Path handoverPath() {
    return handover.path();
  }

  long handoverBytes() {
    return handover.bytes();
  }

  /**
   * A batch that a trainer has taken; closing it releases the area.
   *
   * @param waited how long the trainer has waited for it, in nanoseconds
   */
  synchronized Batch batch(int lane, int area, long epoch, long waited) {
    if (retired) {
      throw Failure.wrongCall("the loader is closed");
    }
    tallies.count(areas(lane).memory(area), epoch, waited);
    Batch[] self = new Batch[1];
    Batch batch =
        new Batch(
            dataset.snapshot(),
            areas(lane).memory(area),
            areas(lane).offset(area),
            handover.resident(),
            () -> release(self, lane, area));
    self[0] = batch;
    inUse.add(batch);
    return batch;
  }

  private synchronized void release(Batch[] batch, int lane, int area) {
    inUse.remove(batch[0]);
    areas(lane).release(area);
    if (retired) {
      closeWhenUnused();
    }
  }

  /**
   * Ends all reading, but leaves open batches to whoever has them. No lane may run.
   *
   * @param afterwards done when the last batch is closed
   */
  synchronized void retire(Runnable afterwards) {
    whenUnused = afterwards;
    retire();
  }

  private synchronized void retire() {
    retired = true;
    RuntimeException failure = null;
    while (!closings.isEmpty()) {
      try {
        closings.pop().run();
      } catch (RuntimeException thrown) {
        failure = thrown; // the others are closed all the same
      }
    }
    try {
      handover.retire();
    } catch (RuntimeException thrown) {
      failure = thrown;
    }
    closeWhenUnused();
    if (failure != null) {
      throw failure;
    }
  }

  private void closeWhenUnused() {
    if (inUse.isEmpty() && !closed) {
      closed = true;
      try {
        handover.close();
      } finally {
        try {
          tallies.close();
        } finally {
          whenUnused.run();
        }
      }
    }
  }

  /**
   * Ends all reading and gives the memory back; batches that are open are closed. No lane may run.
   */
  @Override
  public void close() {
    close(() -> {});
  }

  /** The same, and then something that must not be done while a batch is in use. */
  void close(Runnable afterwards) {
    retire(afterwards);
    List<Batch> open;
    synchronized (this) {
      open = List.copyOf(inUse);
    }
    for (Batch batch : open) {
      try {
        batch.close();
      } catch (IllegalStateException used) {
        // A system call of another thread uses it: its memory stays until that closes the batch.
      }
    }
  }

  synchronized boolean isClosed() {
    return closed;
  }
}
