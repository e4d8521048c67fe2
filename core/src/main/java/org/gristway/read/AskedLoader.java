package org.gristway.read;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.function.LongPredicate;
import org.gristway.Failure;
import org.gristway.chunk.FolderChunkStore;
import org.gristway.dataset.Dataset;
import org.gristway.handover.AreaQueue;
import org.gristway.handover.Batch;
import org.gristway.handover.HandoverRoom;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Run;
import org.gristway.plan.RunSteps;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.SampleSet;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;
import org.gristway.plan.policy.SampleOrderPolicy;
import org.jspecify.annotations.Nullable;

/**
 * A dataset that is asked by index, as training code with a sampler of its own does.
 *
 * <p><b>Exact</b>: a request gets the samples that it names; damage is a failure.
 * <b>Redirected</b>: the user states that the sampler draws each index of a set once per epoch.
 * Then an index only says <i>that</i> a sample is wanted: any sample of the set that was not given
 * since {@link #setEpoch} answers it, and the batch tells which it was. So a training set never
 * gets a validation sample, and everything is read in whole extents ahead of need.
 *
 * <p>Any thread may ask. The order of redirected samples is that of the requests' arrival; it is
 * the same in every run where requests come in the same order.
 */
public final class AskedLoader implements AutoCloseable {

  /** Batches that may be open at once; their memory is taken only when they are. */
  private static final int MOST_OPEN = 256;

  private final Dataset dataset;
  private final LoaderOptions options;
  private final SampleLayout layout;
  private final SampleSet set;
  private final boolean redirect;
  private final PlanInputs inputs;
  private final HandoverRoom room;
  private final long[] asked; // a bit a sample: asked for in this epoch
  private long answered; // samples of the set given in this epoch
  private long repeats;
  private long requests;
  private long epoch;
  private final List<Engine> retired = new ArrayList<>(); // whose batches somebody still has
  private volatile Engine engine;
  private AskedSteps steps;
  private PlanExecutor executor;
  private boolean closed;
  private @Nullable Throwable failure; // that has left the plan half carried out

  private AskedLoader(
      Dataset dataset,
      LoaderOptions options,
      SampleSet set,
      boolean redirect,
      @Nullable HandoverRoom shared) {
    this.dataset = dataset;
    dataset.snapshot().hold();
    this.options = options;
    this.layout = SampleLayout.of(dataset.snapshot());
    this.set = set;
    this.redirect = redirect;
    // Whoever asks makes the batches, so a sample is a step; and the set has one lane.
    PlanSettings given = options.withRanks(1).planSettings();
    // What is asked for exactly takes no frames: the plan is not carried out.
    PlanSettings settings =
        redirect
            ? new PlanSettings(given.policy(), 1, given.memory(), given.extentBytes(), given.tail())
            : new PlanSettings(
                SampleOrderPolicy.NAME, 1, given.extentBytes(), given.extentBytes(), given.tail());
    this.inputs =
        new PlanInputs(
            layout,
            ExtentCuts.cut(layout, settings.extentBytes()),
            set,
            options.seed(),
            0,
            World.of(1),
            settings);
    this.asked = new long[Math.toIntExact(dataset.size() / 64) + 1];
    this.room = shared == null ? room() : shared;
    begin(0);
  }

  private HandoverRoom room() {
    ReadPlan plan = firstRun(0).firstPlan();
    return new Admission(1)
        .requests(dataset.snapshot(), options, Engine.residentBytes(plan, options));
  }

  /** Answers with exactly the samples that are asked for. */
  public static AskedLoader exact(Path path, LoaderOptions options) {
    return open(path, options.withStrict(true), dataset -> SampleSet.all(dataset.size()), false);
  }

  /**
   * The same over an open dataset, which it closes in the end.
   *
   * @param room in the handover, which others may share
   */
  public static AskedLoader exact(Dataset dataset, LoaderOptions options, HandoverRoom room) {
    return open(
        dataset, options.withStrict(true), opened -> SampleSet.all(opened.size()), false, room);
  }

  /** Redirects within all samples of the dataset. */
  public static AskedLoader redirected(Path path, LoaderOptions options) {
    return open(path, options, dataset -> SampleSet.all(dataset.size()), true);
  }

  /**
   * Redirects within a set of samples.
   *
   * @param options of which {@code ranks} says how many processes share the sampler: fewer indices
   *     than that may be asked for twice in an epoch, to make their shares equal
   * @param indices the set
   */
  public static AskedLoader redirected(Path path, LoaderOptions options, LongPredicate indices) {
    return open(path, options, dataset -> SampleSet.where(dataset.size(), indices), true);
  }

  private static AskedLoader open(
      Path path, LoaderOptions options, Function<Dataset, SampleSet> set, boolean redirect) {
    return open(Dataset.open(path), options, set, redirect, null);
  }

  private static AskedLoader open(
      Dataset dataset,
      LoaderOptions options,
      Function<Dataset, SampleSet> set,
      boolean redirect,
      @Nullable HandoverRoom room) {
    try {
      dataset.refusePortion("read by index");
      dataset.refuseIncomplete();
      return new AskedLoader(dataset, options, set.apply(dataset), redirect, room);
    } catch (Throwable refused) {
      dataset.close();
      throw refused;
    }
  }

  /** How many indices may be asked for in an epoch. */
  public long size() {
    return set.count();
  }

  /**
   * Begins an epoch: every sample of the set is there to be given again. Going on to the next epoch
   * when one is used up costs nothing; anything else reads anew.
   */
  public synchronized void setEpoch(long number) {
    if (closed || number < 0) {
      throw Failure.wrongCall("there is no epoch %d, or the loader is closed", number);
    }
    boolean goesOn = failure == null && answered == set.count() && number == epoch + 1;
    boolean isUnused = failure == null && answered == 0 && repeats == 0 && number == epoch;
    if (!goesOn && !isUnused && redirect) {
      Engine old = engine;
      begin(number);
      old.retire(() -> {});
      retired.removeIf(Engine::isClosed);
      retired.add(old);
    }
    Arrays.fill(asked, 0);
    answered = 0;
    repeats = 0;
    requests = 0;
    epoch = number;
  }

  private Run firstRun(long number) {
    ReadPolicy policy = Policies.named(inputs.settings().policy());
    if (policy.caches()) {
      throw Failure.wrongCall(
          "policy '%s' keeps samples by the order of a whole run, which nobody knows where they are"
              + " asked for by index",
          policy.name());
    }
    return Run.beginAt(number, policy, inputs, Long.MAX_VALUE);
  }

  private void begin(long number) {
    Run run = firstRun(number);
    RunSteps plan = run.lane(0);
    // Who asks exactly may ask again, so what the page cache has is worth having.
    FolderChunkStore store =
        redirect
            ? FolderChunkStore.direct(dataset.path(), dataset.snapshot())
            : FolderChunkStore.atRandom(dataset.path(), dataset.snapshot());
    engine =
        new Engine(
            dataset,
            options.withRanks(1), // whoever asks, all of the set is given by this one
            run.firstPlan(),
            set,
            List.of(room),
            MOST_OPEN,
            store,
            Threads.PLATFORM,
            Engine::log);
    steps = new AskedSteps(layout, redirect ? plan : null);
    executor = engine.executor(0, steps, Post.NONE, PeerCaches.NONE);
    failure = null;
  }

  /**
   * As many samples as indices, in one batch. It is the caller's until it is closed.
   *
   * @throws Failure (wrong call) if an index is outside the set, or was asked for before in this
   *     epoch, or if the batches that are open leave no room for another; nothing has changed then
   */
  public synchronized Batch get(long... indices) {
    Batch batch = getIfRoom(indices);
    if (batch == null) {
      throw Failure.wrongCall(
          "batches that are in use have %d of the %d bytes that they may have at once: close a"
              + " batch before asking for more, or give the handover more memory",
          room.taken(), room.most());
    }
    return batch;
  }

  /**
   * The same; null if the batches that are open leave no room, which others may have. Nothing has
   * changed then.
   */
  public synchronized @Nullable Batch getIfRoom(long... indices) {
    check(indices);
    steps.begin(epoch, requests++);
    for (long index : indices) {
      boolean again = isAsked(index);
      mark(index);
      if (!redirect) {
        steps.askExactly(index, false);
      } else if (again) {
        repeats++;
        steps.askExactly(index, true);
      } else {
        answered++;
        steps.askAny(index);
      }
    }
    long start = System.nanoTime();
    try {
      int area = build();
      if (area == AreaQueue.ALL_TAKEN) {
        takeBack();
        return null;
      }
      return engine.batch(0, area, epoch, System.nanoTime() - start);
    } catch (InterruptedException stop) {
      failure = stop;
      Thread.currentThread().interrupt();
      throw Failure.environment("interrupted while waiting for data");
    } catch (RuntimeException | Error thrown) {
      failure = thrown;
      throw thrown;
    }
  }

  /** Makes the last request one that nobody has made. */
  private void takeBack() {
    List<AskedSteps.Undone> undone = executor.giveBack();
    requests--;
    for (AskedSteps.Undone each : undone) {
      if (redirect && each.step() instanceof PlanStep.Deliver deliver) {
        if (deliver.repeat()) {
          repeats--;
        } else {
          answered--;
          asked[(int) (deliver.request() >>> 6)] &= ~(1L << deliver.request());
        }
      }
    }
    steps.takeBack(undone);
  }

  private int build() throws InterruptedException {
    int area = executor.build(Integer.MAX_VALUE);
    if (area == AreaQueue.ALL_TAKEN) {
      return area;
    }
    AreaQueue queue = engine.areas(0).queue();
    queue.publish(area);
    return queue.take();
  }

  private void check(long[] indices) {
    if (closed) {
      throw Failure.wrongCall("the loader is closed");
    }
    if (failure != null && redirect) {
      throw Failure.environment(
          "reading has failed before in this epoch: %s", String.valueOf(failure.getMessage()));
    }
    if (indices.length == 0) {
      throw Failure.wrongCall("a request must name at least one index");
    }
    if (!engine.areas(0).queue().hasFree()) {
      throw Failure.wrongCall(
          "%d batches are open: close a batch before asking for more, or copy what must be kept",
          MOST_OPEN);
    }
    int again = 0;
    Set<Long> named = new HashSet<>();
    for (long index : indices) {
      if (!set.contains(index)) {
        throw Failure.wrongCall(
            "index %d is not in the set of %d: does the sampler draw from another split, or from the"
                + " whole dataset?",
            index, set.count());
      }
      if (redirect && (isAsked(index) || !named.add(index))) {
        again++;
        if (repeats + again >= options.ranks()) {
          throw Failure.wrongCall(
              "index %d was asked for before in epoch %d: with redirection, each index may be asked"
                  + " for once per epoch (is setEpoch called between epochs, and does the sampler"
                  + " draw without replacement?)",
              index, epoch);
        }
      }
    }
  }

  private boolean isAsked(long index) {
    return (asked[(int) (index >>> 6)] >>> index & 1) == 1;
  }

  private void mark(long index) {
    asked[(int) (index >>> 6)] |= 1L << index;
  }

  /** How another process opens the memory file that batches stand in; another after setEpoch. */
  public synchronized Path handoverPath() {
    return engine.handoverPath();
  }

  /** What has been read and delivered up to now. */
  public synchronized EpochReport report() {
    return engine.tallies().epoch(epoch).report(epoch);
  }

  @Override
  public void close() {
    engine.tryOnce(); // whoever waits for the storage holds the lock
    closeUnused();
  }

  private synchronized void closeUnused() {
    if (!closed) {
      closed = true;
      engine.close();
      retired.forEach(Engine::close);
      dataset.close();
    }
  }
}
