package org.gristway.read;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.chunk.FolderChunkStore;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.handover.Handover;
import org.gristway.os.MachineMemory;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.StepSource;
import org.gristway.plan.policy.UnboundedPolicy;

/**
 * All that plans are carried out with: the store, the frames, the threads that read, the handover
 * and the counters. It owns them; the dataset stays its opener's.
 */
final class Engine implements AutoCloseable {

  private static final System.Logger LOG = System.getLogger(Loader.class.getName());

  private final Dataset dataset;
  private final long memoryBytes;
  private final FolderChunkStore store;
  private final FolderChunkStore secondStore; // through the page cache
  private final SecondLook secondLook;
  private final FramePool pool;
  private final LoadQueue loads;
  private final Tallies tallies = new Tallies();
  private final Handover handover;
  private final Set<Batch> inUse = ConcurrentHashMap.newKeySet();

  /**
   * @param plan one of those that will be carried out: all have the same frames
   * @param areas of each lane in the handover
   */
  Engine(
      Dataset dataset,
      LoaderOptions options,
      ReadPlan plan,
      int lanes,
      int areas,
      Consumer<String> notices) {
    this.dataset = dataset;
    this.memoryBytes = plan.residentBytes();
    refuseTooMuch(options);
    this.store = FolderChunkStore.direct(dataset.path(), dataset.snapshot());
    this.secondStore = new FolderChunkStore(dataset.path(), dataset.snapshot());
    this.secondLook =
        new SecondLook(dataset.path(), dataset.snapshot(), secondStore, options.strict(), notices);
    this.pool = new FramePool(plan.frames(), plan.inputs().settings().extentBytes(), memoryBytes);
    this.handover = new Handover(lanes, areas);
    this.loads = new LoadQueue(store, lanes, options.threads());
  }

  private void refuseTooMuch(LoaderOptions options) {
    long available = MachineMemory.available();
    if (memoryBytes > available) {
      throw Failure.environment(
          "%d bytes of memory are not free here, only %d are: give --memory at most that%s",
          memoryBytes,
          available,
          options.policy().equals(UnboundedPolicy.NAME)
              ? ", and another policy than '" + UnboundedPolicy.NAME + "', which holds everything"
              : "");
    }
  }

  /** Where notices go that nobody else takes. */
  static void log(String line) {
    LOG.log(System.Logger.Level.WARNING, line);
  }

  /** What carries a lane's steps out. */
  PlanExecutor executor(int lane, StepSource steps) {
    return new PlanExecutor(
        lane, steps, dataset.snapshot(), pool, loads, secondLook, tallies, handover.rank(lane));
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

  long handoverBytes() {
    return handover.bytes();
  }

  /** A batch that a trainer has taken; closing it releases the area. */
  Batch batch(int lane, int area) {
    Batch[] self = new Batch[1];
    Batch batch =
        new Batch(
            dataset.snapshot(),
            areas(lane).memory(area),
            () -> {
              inUse.remove(self[0]);
              areas(lane).queue().release(area);
            });
    self[0] = batch;
    inUse.add(batch);
    return batch;
  }

  /**
   * Ends all reads and gives the memory back; batches that are open are closed. No lane may run.
   */
  @Override
  public void close() {
    loads.close();
    List.copyOf(inUse).forEach(Batch::close);
    handover.close();
    pool.close();
    store.close();
    secondStore.close();
    tallies.close();
  }
}
