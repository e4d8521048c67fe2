package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.gristway.Failure;
import org.gristway.chunk.FolderChunkStore;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Workers;
import org.gristway.handover.AreaQueue;
import org.gristway.handover.Batch;
import org.gristway.handover.Handover;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.ReadState;
import org.gristway.plan.Run;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.policy.Policies;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * Feeds training from a dataset: each epoch delivers every sample once, in a random order that the
 * seed decides.
 *
 * <pre>{@code
 * try (Loader loader = Loader.open(Path.of("flowers.gw"), LoaderOptions.DEFAULT)) {
 *   for (Batch batch : loader.epoch()) {
 *     train(batch);
 *   }
 * }
 * }</pre>
 *
 * <p>Reading runs ahead of need from the moment it is opened, inside the memory that the options
 * give it. Each rank is for one thread at a time; different ranks may be used by different threads,
 * and none waits for another. {@link #close} is for when all are done.
 */
public final class Loader implements AutoCloseable {

  private final Dataset dataset;
  private final LoaderOptions options;
  private final Run run;
  private final ExtentCuts cuts;
  private final boolean hasBatches;
  private final Engine engine;
  private final @Nullable PostOffice post; // if ranks mix what they read
  private final PeerCaches peers;
  private final boolean isOwnPost;
  private final LongConsumer waiting = this::countWaiting;
  private final List<RankLane> lanes = new ArrayList<>(); // of the ranks of this machine
  private boolean closed;

  private Loader(
      Dataset dataset,
      LoaderOptions options,
      Beginning beginning,
      @Nullable PostOffice given,
      PeerCaches peers,
      Threads threads,
      Admission admission,
      Consumer<String> notices) {
    this.dataset = dataset;
    dataset.snapshot().hold();
    this.options = options;
    this.isOwnPost = given == null;
    this.peers = peers;
    Snapshot snapshot = dataset.snapshot();
    ReadPolicy policy = Policies.named(options.policy());
    Refusals.check(dataset, options, policy, beginning, given != null);
    dataset.refuseIncomplete();
    this.post = options.isExchanging() ? post(options, given) : null;
    PlanInputs inputs =
        PlanInputs.of(
            SampleLayout.of(snapshot), options.seed(), options.world(), options.planSettings());
    if (beginning.samples() != null) {
      inputs = inputs.with(beginning.samples(), 0);
    }
    this.cuts = inputs.cuts();
    this.run = run(policy, inputs, options.epochs(), beginning);
    this.engine =
        new Engine(
            dataset,
            options,
            run.firstPlan(),
            inputs.samples(),
            admission.rooms(snapshot, options, Engine.residentBytes(run.firstPlan(), options)),
            Handover.AREAS_AHEAD,
            // Past the page cache: each byte is read once an epoch, and none is worth keeping.
            FolderChunkStore.direct(dataset.path(), snapshot),
            threads,
            notices);
    // With no batches at all, a lane would look for the next one for ever.
    this.hasBatches = inputs.shares().steps() > 0 && run.firstEpoch() < options.epochs();
    try {
      if (post != null) {
        int first = options.world().firstRank();
        post.follow(first, first + options.ranks(), waiting);
      }
      makeLanes(threads);
      if (beginning.stepsAtOnce() > 0) {
        start(beginning.stepsAtOnce());
      }
    } catch (Throwable thrown) {
      close();
      throw thrown;
    }
  }

  /** What the ranks push to each other by. */
  private static PostOffice post(LoaderOptions options, @Nullable PostOffice given) {
    int window = options.exchange().window();
    PostOffice post = given == null ? PostOffice.alone(options.world().ranks(), window) : given;
    if (post.window() != window) {
      throw new IllegalArgumentException(post.window() + " steps of room for pushing " + window);
    }
    return post;
  }

  private static Run run(ReadPolicy policy, PlanInputs inputs, long endEpoch, Beginning beginning) {
    ReadState state = beginning.state();
    Run run =
        state == null
            ? Run.begin(policy, inputs, endEpoch)
            : Run.resume(policy, inputs, state, Policies::named, endEpoch);
    Beginning.Place place = beginning.place();
    return place == null ? run : run.from(place.epoch(), place.step());
  }

  private void countWaiting(long bytes) {
    engine.tallies().add(ReadCounter.WAITING_BYTES, bytes);
  }

  private void makeLanes(Threads threads) {
    int first = options.world().firstRank();
    for (int lane = 0; lane < options.ranks(); lane++) {
      PlanExecutor executor =
          engine.executor(lane, run.lane(first + lane), post(first + lane), peers);
      lanes.add(new RankLane(lane, run, executor, engine.areas(lane), threads, this::giveUp));
    }
  }

  /** Ends all lanes when one cannot go on: others may wait for what it would have loaded. */
  private void giveUp(Throwable why) {
    endLanes(why);
    if (post != null) {
      Failure told = why instanceof Failure known ? known : Failure.environment("%s", why);
      for (int lane = 0; lane < options.ranks(); lane++) {
        post.ended(options.world().firstRank() + lane, told);
      }
    }
  }

  private Post post(int rank) {
    if (post == null) {
      return Post.NONE;
    }
    post.goOn(rank, run.firstEpoch(), run.firstStep());
    return post.rank(rank);
  }

  /** Begins to read, for a loader that was opened without; so many steps make a batch. */
  public void start(int steps) {
    for (RankLane lane : lanes) {
      if (hasBatches) {
        lane.start(steps);
      } else {
        lane.end(null);
      }
    }
  }

  private void endLanes(@Nullable Throwable why) {
    lanes.forEach(lane -> lane.end(why));
    engine.tryOnce();
  }

  /** Opens the newest version of a dataset and begins to read. */
  public static Loader open(Path path, LoaderOptions options) {
    return open(Dataset.open(path), options, Beginning.NEW_RUN, Engine::log);
  }

  /**
   * Goes on where a state was taken. In the world and with the options of then, the order is the
   * one that it would have been; in another, what is left of the epoch is dealt anew.
   */
  public static Loader open(Path path, LoaderOptions options, ReadState state) {
    return open(Dataset.open(path), options, Beginning.at(state), Engine::log);
  }

  /**
   * Opens a loader over an open dataset, which it closes in the end.
   *
   * @param notices told a line for what is damaged, and for what the storage fails to give
   */
  public static Loader open(
      Dataset dataset, LoaderOptions options, Beginning beginning, Consumer<String> notices) {
    return open(dataset, options, beginning, null, notices);
  }

  /** The same for a job whose ranks push to each other but keep nothing. */
  public static Loader open(
      Dataset dataset,
      LoaderOptions options,
      Beginning beginning,
      @Nullable PostOffice post,
      Consumer<String> notices) {
    return open(dataset, options, beginning, post, PeerCaches.NONE, Threads.PLATFORM, notices);
  }

  /**
   * The same for ranks of a job that has others elsewhere.
   *
   * @param post by which ranks push samples to each other; it stays the caller's
   * @param peers by which samples are fetched that other nodes keep
   * @param threads that read and build batches
   */
  public static Loader open(
      Dataset dataset,
      LoaderOptions options,
      Beginning beginning,
      @Nullable PostOffice post,
      PeerCaches peers,
      Threads threads,
      Consumer<String> notices) {
    return open(dataset, options, beginning, post, peers, threads, new Admission(1), notices);
  }

  /**
   * The same for one of several loaders that read alike on this machine.
   *
   * @param admission of all of them
   */
  public static Loader open(
      Dataset dataset,
      LoaderOptions options,
      Beginning beginning,
      @Nullable PostOffice post,
      PeerCaches peers,
      Threads threads,
      Admission admission,
      Consumer<String> notices) {
    try {
      return new Loader(dataset, options, beginning, post, peers, threads, admission, notices);
    } catch (Throwable refused) {
      dataset.close();
      throw refused;
    }
  }

  /** The dataset that is read. */
  public Dataset dataset() {
    return dataset;
  }

  public LoaderOptions options() {
    return options;
  }

  /** The extents that the dataset is cut into. */
  public ExtentCuts cuts() {
    return cuts;
  }

  /**
   * Copies a sample that this node keeps for the job, as another node's {@link PeerCaches} ask for
   * it. Any thread may call, at any time, several at once.
   *
   * @param tier of this node's cache, as in {@link org.gristway.plan.Caching}
   * @param target of the sample's length; if it was not there, it may hold anything
   * @return whether it was there; once the loader is closed, nothing is
   */
  public boolean copyKept(long sample, int tier, MemorySegment target) {
    return engine.copyKept(sample, tier, target);
  }

  /** The most memory that frames take, and what is kept in memory. */
  public long memoryBytes() {
    return engine.memoryBytes();
  }

  /** The memory of the batches on their way to trainers, on top of the frames. */
  public long handoverBytes() {
    return engine.handoverBytes();
  }

  /** How another process opens the memory file that batches stand in. */
  public Path handoverPath() {
    return engine.handoverPath();
  }

  /** Lets each rank have so many batches at once, or more if it may already. */
  public void grow(int batches) {
    lanes.forEach(lane -> lane.areas().grow(batches));
  }

  /** True if what was read once is never read again: going on costs hardly anything then. */
  public boolean staysResident() {
    return run.firstPlan().staysResident();
  }

  /** The first epoch of which batches are given. */
  public long firstEpoch() {
    return run.firstEpoch();
  }

  /** The step of the first epoch's plan that is the first to be given. */
  public long firstStep() {
    return run.firstStep();
  }

  /** Steps of each rank in an epoch; in one that was gone on with, those of what was left of it. */
  public long steps(long epoch) {
    return run.steps(epoch);
  }

  /** The rest of the only rank's current epoch; when that is over, all of the next. */
  public Iterable<Batch> epoch() {
    if (options.ranks() > 1) {
      throw Failure.wrongCall("there are %d ranks: say which one's epoch", options.ranks());
    }
    return epoch(options.world().firstRank());
  }

  /**
   * The rest of a rank's current epoch; when that is over, all of the next. Each batch is closed
   * when the next one is asked for.
   */
  public Iterable<Batch> epoch(int rank) {
    return lane(rank).rest(options.epochs(), () -> next(rank));
  }

  /**
   * The next batch of a rank, whichever epoch it is of. It is the caller's until it is closed; a
   * few may be open at once.
   *
   * @throws Failure if the data cannot be read on; if too many batches are open, or too large ones
   *     (wrong call)
   */
  public Batch next(int rank) {
    Batch batch = nextIfRoom(rank);
    if (batch == null) {
      throw Failure.wrongCall(
          "all %d batches that rank %d may hold are in use, of %d bytes for all ranks, or there is no"
              + " room for another: close a batch before asking for the next, copy what must be kept,"
              + " or give the handover more memory",
          lane(rank).areas().queue().size(), rank, engine.handoverBytes());
    }
    return batch;
  }

  /** The same; null if none can come before a batch is closed. */
  public @Nullable Batch nextIfRoom(int rank) {
    RankLane lane = lane(rank);
    long start = System.nanoTime();
    int area;
    try {
      area = lane.areas().queue().take();
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      throw Failure.environment("interrupted while waiting for data");
    }
    if (area == AreaQueue.NONE) {
      throw Failure.wrongCall("there are no more batches: the run is over, or the loader closed");
    }
    if (area == AreaQueue.ALL_TAKEN) {
      return null;
    }
    int number = rank - options.world().firstRank();
    Batch batch = engine.batch(number, area, lane.epoch(), System.nanoTime() - start);
    if (lane.advance()) {
      countEpochs();
    }
    return batch;
  }

  private RankLane lane(int rank) {
    return lanes.get(rank - options.world().firstRank());
  }

  private void countEpochs() {
    synchronized (lanes) {
      long done = lanes.stream().mapToLong(RankLane::epoch).min().orElse(0) - run.firstEpoch();
      Tallies tallies = engine.tallies();
      tallies.add(ReadCounter.EPOCHS, done - tallies.get(ReadCounter.EPOCHS));
    }
  }

  /**
   * How far the run has come: what every rank has received. Ask when no rank is being used.
   *
   * @throws Failure (wrong call) if the ranks have not received the same number of batches
   */
  public ReadState state() {
    RankLane first = lanes.getFirst();
    for (int i = 1; i < lanes.size(); i++) {
      RankLane other = lanes.get(i);
      if (other.epoch() != first.epoch() || other.step() != first.step()) {
        throw Failure.wrongCall(
            "the ranks are not at the same step: rank 0 is at step %d of epoch %d, rank %d at step"
                + " %d of epoch %d; take the state between steps",
            first.step(), first.epoch(), i, other.step(), other.epoch());
      }
    }
    return run.stateAt(first.epoch(), first.step());
  }

  /** The state of the run when every rank has received so many steps of an epoch. */
  public ReadState stateAt(long epoch, long step) {
    return run.stateAt(epoch, step);
  }

  /** What an epoch has read and delivered up to now; of the latest epochs only. */
  public EpochReport report(long epoch) {
    return engine.tallies().epoch(epoch).report(epoch);
  }

  /** The value of a counter. */
  public long counter(ReadCounter counter) {
    return engine.tallies().get(counter);
  }

  /**
   * Ends all reading, but leaves the batches that are open to whoever has them: the memory goes
   * with the last of them.
   */
  public synchronized void retire() {
    end(() -> engine.retire(dataset::close));
  }

  /**
   * Ends all reading and gives the memory back; batches that are open are closed. Closing again
   * does nothing.
   */
  @Override
  public synchronized void close() {
    end(() -> engine.close(dataset::close));
  }

  private void end(Runnable endEngine) {
    endLanes(null);
    Workers.join(lanes.stream().map(RankLane::thread).toList());
    if (!closed) {
      closed = true;
      if (post != null) {
        post.unfollow(waiting);
      }
      try {
        endEngine.run();
      } finally {
        if (post != null && isOwnPost) {
          post.close();
        }
      }
    }
  }
}
