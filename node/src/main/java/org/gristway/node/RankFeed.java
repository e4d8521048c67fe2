package org.gristway.node;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.handover.Handover;
import org.gristway.plan.SampleSet;
import org.gristway.read.Admission;
import org.gristway.read.Beginning;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;
import org.gristway.read.PeerCaches;
import org.gristway.read.PostOffice;
import org.gristway.read.ReadCounter;
import org.gristway.read.Threads;
import org.jspecify.annotations.Nullable;

/**
 * The batches of one rank, by their number. A batch is a function of its number, so asking twice
 * gives the same: what was read ahead serves whoever asks in turn, and for anything else reading
 * begins anew at what is asked for. That is what makes an epoch that is broken off, a restarted
 * worker and a restarted node harmless.
 *
 * <p>Several clients may share the rank's batches, each asking for its own in rising order; those
 * of the others are kept for them. Any thread may call.
 */
final class RankFeed implements AutoCloseable {

  /** Who is given batches. */
  interface Client {

    /**
     * Is called now and then while a request of its waits, with locks held.
     *
     * @throws Failure if it is gone, and nobody waits any more
     */
    void check();
  }

  /** In place of the steps of a batch: nothing is read until they are known. */
  private static final int UNKNOWN = 0;

  /** In place of the steps of a batch: the loader could not be opened anew. */
  private static final int NOT_OPEN = -1;

  /** Batches that are built to no end rather than beginning anew. */
  private static final int WORTH_SKIPPING = 16;

  /** The same, in epochs, where what was read once stays. */
  private static final int EPOCHS_WORTH_SKIPPING = 2;

  /** Between two looks whether who waits is still there. */
  private static final long CHECK_SECONDS = 1;

  /** More than any training has. */
  private static final long MOST_EPOCHS = 1L << 48;

  private final int rank;
  private final Settings settings;
  private final Dataset dataset;
  private final long firstEpoch;
  private final long firstStep;
  private final PostOffice office;
  private final PeerCaches caches;
  private final Admission admission;
  private final Consumer<String> notices;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final TreeMap<Long, Piece> held = new TreeMap<>(); // of this epoch, by their first step
  private final Map<Client, Integer> lent = new HashMap<>(); // batches, by who has them
  private final Map<Client, Integer> waiting = new HashMap<>(); // for memory, with what they have
  private final Map<Client, Integer> wants = new HashMap<>(); // at once, by who
  private final Map<ReadCounter, Long> counted = new EnumMap<>(ReadCounter.class); // and retired

  private volatile Loader loader;
  private int unit; // steps of a batch
  private int descriptor;
  private long serial;
  private long epoch;
  private long frontier; // the step that the loader gives next
  private int open; // batches of the loader that are held, or lent to clients that are there
  private int gone; // batches of the loader that clients have left with
  private long released; // batches, of this loader and those before it
  private int mostPieces = 1; // of a request: it may ask for more than a batch
  private int spare; // batches beyond that, for those that cannot be read again
  private int mostAreas; // that there have been
  private boolean taking; // somebody waits for the loader's next batch
  private volatile boolean closed;

  /**
   * @param dataset that is read from the first batch to the last, whatever becomes of its folder;
   *     it stays the caller's
   * @param office by which it pushes samples to other ranks, where the settings say so
   * @param caches of the other ranks, by their number
   * @param admission of all ranks of this machine
   */
  RankFeed(
      int rank,
      Settings settings,
      Dataset dataset,
      PostOffice office,
      PeerCaches caches,
      Admission admission,
      Consumer<String> notices) {
    this.rank = rank;
    this.admission = admission;
    this.office = office;
    this.caches = caches;
    this.settings = settings;
    this.dataset = dataset;
    this.notices = notices;
    // Who asks by index tells the size of batches with the first request.
    this.unit = settings.mode() == Settings.Mode.REDIRECT ? UNKNOWN : 1;
    this.loader = open(null, unit);
    this.firstEpoch = loader.firstEpoch();
    this.firstStep = loader.firstStep();
    begin();
  }

  int rank() {
    return rank;
  }

  private Loader open(Beginning.@Nullable Place place, int steps) {
    LoaderOptions options = settings.options(rank, dataset.snapshot());
    SampleSet samples = settings.samples(dataset.size());
    Beginning beginning = new Beginning(settings.state(), place, samples, steps);
    return Loader.open(
        dataset.share(), options, beginning, office, caches, Threads.PLATFORM, admission, notices);
  }

  private void begin() {
    serial = Piece.nextSerial();
    Path file = loader.handoverPath();
    descriptor = Integer.parseInt(file.getFileName().toString());
    epoch = loader.firstEpoch();
    frontier = loader.firstStep();
    open = 0;
    gone = 0;
    grow();
  }

  /** Lets the loader have as many batches as are of use, beside those that nobody gives back. */
  private void grow() {
    loader.grow(areas() + gone);
  }

  /** Says how many batches a client may have at once, besides what is read ahead for it. */
  void attach(Client client, int batches) {
    locked(
        () -> {
          wants.put(client, batches);
          grow();
        });
  }

  /** Tells that a client is gone; true if it was the last. */
  boolean detach(Client client) {
    lock.lock();
    try {
      wants.remove(client);
      changed.signalAll();
      return wants.isEmpty();
    } finally {
      lock.unlock();
    }
  }

  private int areas() {
    int wanted = wants.values().stream().mapToInt(Integer::intValue).sum();
    int enough = Handover.AREAS_AHEAD - 1 + Math.max(1, wanted) + mostPieces - 1 + spare;
    mostAreas = Math.max(mostAreas, Math.min(Handover.MOST_AREAS, enough));
    return Math.min(Handover.MOST_AREAS, enough);
  }

  /** True if ranks push to each other: what has been given once is not to be had again. */
  private boolean exchanges() {
    return settings.exchange().share() > 0;
  }

  private void locked(Runnable work) {
    lock.lock();
    try {
      work.run();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Where the run begins, wherever it is by now. */
  long firstEpoch() {
    return firstEpoch;
  }

  long firstStep() {
    return firstStep;
  }

  /** Steps of the rank in an epoch. */
  long steps(long ofEpoch) {
    return loader.steps(ofEpoch);
  }

  /** Copies a sample that the rank keeps for others; false if it does not. */
  boolean copyKept(long sample, int tier, MemorySegment target) {
    return loader.copyKept(sample, tier, target);
  }

  String stateAt(long ofEpoch, long step) {
    return loader.stateAt(ofEpoch, step).toString();
  }

  /** What has been counted, in this loader and those before it. */
  Map<ReadCounter, Long> counters() {
    Map<ReadCounter, Long> sums = new EnumMap<>(ReadCounter.class);
    locked(
        () -> {
          for (ReadCounter counter : ReadCounter.values()) {
            long before = counter.isLevel() ? 0 : counted.getOrDefault(counter, 0L);
            sums.put(counter, before + (unit == NOT_OPEN ? 0 : loader.counter(counter)));
          }
        });
    return sums;
  }

  /**
   * Some steps of an epoch; empty if it has not so many left.
   *
   * @param client who asks
   * @param start the first step
   * @param count of steps
   * @param atOnce steps of a batch: clients ask for this many, but at the end of an epoch
   * @param workers that share the rank, and ask for every so many-th batch each
   */
  List<Piece> take(Client client, long ofEpoch, long start, int count, int atOnce, int workers)
      throws InterruptedException {
    if (ofEpoch < 0
        || ofEpoch > MOST_EPOCHS
        || start < 0
        || count < 1
        || atOnce < 1
        || workers < 1) {
      throw Failure.wrongCall("there is no step %d in epoch %d", start, ofEpoch);
    }
    List<Piece> pieces = new ArrayList<>();
    lock.lockInterruptibly();
    try {
      goTo(client, ofEpoch, start, atOnce, workers);
      if (start > steps(ofEpoch) - count) {
        return pieces;
      }
      if (count / unit + 1 > mostPieces && count > unit) {
        mostPieces = count / unit + 1;
        grow();
      }
      long step = start;
      int missing = count;
      while (missing > 0) {
        splitAt(step);
        Piece piece = held.remove(step);
        if (piece == null) {
          // Meanwhile another client may have gone elsewhere, or have had this very batch.
          takeNext(client);
          goTo(client, ofEpoch, step, atOnce, workers);
        } else {
          int places = atOnce == 1 ? piece.count() : Math.min(missing, piece.count());
          pieces.add(piece.head(places));
          if (places < piece.count()) {
            held.put(step + places, piece.tail(places));
          } else {
            piece.release();
          }
          lent.merge(client, 1, Integer::sum);
          step += atOnce == 1 ? 1 : places;
          missing -= atOnce == 1 ? 1 : places;
        }
      }
      return pieces;
    } catch (Throwable thrown) {
      pieces.forEach(piece -> release(client, piece));
      throw thrown;
    } finally {
      lock.unlock();
    }
  }

  /** True if a step is held, perhaps behind others that nobody has asked for yet. */
  private boolean isHeld(long step) {
    Map.Entry<Long, Piece> entry = held.floorEntry(step);
    return entry != null && step - entry.getKey() < (unit == 1 ? 1 : entry.getValue().count());
  }

  /** Sees to it that a step which is held is the first of its piece. */
  private void splitAt(long step) {
    Map.Entry<Long, Piece> entry = held.floorEntry(step);
    if (entry != null && entry.getKey() < step && isHeld(step)) {
      int before = (int) (step - entry.getKey());
      held.put(entry.getKey(), entry.getValue().head(before));
      held.put(step, entry.getValue().tail(before));
    }
  }

  /** Sees to it that a step of an epoch is held, or among the next of the loader. */
  private void goTo(Client client, long ofEpoch, long start, int atOnce, int workers)
      throws InterruptedException {
    if (unit == UNKNOWN && ofEpoch == epoch && frontier == 0) {
      unit = atOnce;
      loader.start(atOnce);
    }
    while (taking && !isNear(ofEpoch, start, atOnce, workers)) {
      awaitChange(client);
    }
    if (closed) {
      throw Failure.environment("the node ends");
    }
    if (start >= steps(ofEpoch)) {
      return;
    }
    while (isWorthSkipping(ofEpoch, start, atOnce, workers)) {
      if (frontier >= steps(epoch)) {
        epoch++;
        frontier = 0;
      } else if (!skipsNext(client)) {
        break;
      }
      releaseHeld(_ -> true);
    }
    if (isNear(ofEpoch, start, atOnce, workers)) {
      if (ofEpoch == epoch + 1) {
        releaseHeld(_ -> true);
        epoch++;
        frontier = 0;
      }
      // Each client's requests rise: what it has passed, nobody will ask for.
      releaseHeld(step -> step < start && (start - step) % ((long) workers * unit) == 0);
      return;
    }
    reopen(ofEpoch, Math.max(0, start - (workers - 1L) * atOnce), atOnce);
  }

  /** Builds a batch to no end; false if others have done without, so that it never comes. */
  private boolean skipsNext(Client client) throws InterruptedException {
    try {
      takeNext(client);
      return true;
    } catch (Failure failure) {
      if (office.isPassed(failure)) {
        return false;
      }
      throw failure;
    }
  }

  private boolean isNear(long ofEpoch, long start, int atOnce, int workers) {
    if (atOnce != unit) {
      return false;
    }
    long next = frontier;
    if (ofEpoch != epoch) {
      if (ofEpoch != epoch + 1 || frontier < steps(epoch)) {
        return false;
      }
      next = 0;
    } else if (isHeld(start)) {
      return true;
    }
    return start >= next && start - next <= (long) (workers + WORTH_SKIPPING) * unit;
  }

  /** True if all before it is built to no end, as reading everything again would take longer. */
  private boolean isWorthSkipping(long ofEpoch, long start, int atOnce, int workers) {
    boolean isAhead = ofEpoch > epoch || (ofEpoch == epoch && start > frontier);
    // Ranks that push to each other may have begun the next epoch: that cannot be begun again.
    boolean isNearlyOver =
        exchanges()
            && ofEpoch == epoch + 1
            && steps(epoch) - frontier <= (long) mostAreas * unit + WORTH_SKIPPING;
    return unit == atOnce
        && (loader.staysResident() || isNearlyOver)
        && isAhead
        && ofEpoch - epoch <= EPOCHS_WORTH_SKIPPING
        && !closed
        && !isNear(ofEpoch, start, atOnce, workers);
  }

  private void reopen(long ofEpoch, long step, int atOnce) {
    if (exchanges()) {
      office.refuseBack(rank, ofEpoch, step); // while there is something to go on with
    }
    releaseHeld(_ -> true);
    if (unit != NOT_OPEN) {
      for (ReadCounter counter : ReadCounter.values()) {
        counted.merge(counter, loader.counter(counter), Long::sum);
      }
    }
    loader.retire(); // before the next is opened: there may not be memory for both
    unit = NOT_OPEN; // if this fails, the next request tries again
    loader = open(new Beginning.Place(ofEpoch, step), atOnce);
    unit = atOnce;
    begin();
  }

  private interface Steps {
    boolean contain(long step);
  }

  private void releaseHeld(Steps steps) {
    held.entrySet()
        .removeIf(
            entry -> {
              boolean goes = steps.contain(entry.getKey());
              if (goes) {
                entry.getValue().release();
              }
              return goes;
            });
  }

  /** Waits for the loader's next batch, or for somebody who does; it is held then. */
  private void takeNext(Client client) throws InterruptedException {
    if (taking) {
      awaitChange(client);
      return;
    }
    if (open >= areas()) {
      awaitMemory(client, false);
      return;
    }
    Loader from = loader;
    Piece.Memory memory = null;
    boolean isFull = false;
    long before = released;
    taking = true;
    lock.unlock();
    try {
      memory = memory(from);
      isFull = memory == null;
    } catch (Failure failure) {
      if (closed) {
        throw Failure.environment("the node ends");
      }
      throw failure;
    } finally {
      lock.lock();
      taking = false;
      changed.signalAll();
      if (memory != null) {
        held.put(frontier, Piece.whole(memory));
        open++;
        frontier += unit == 1 ? 1 : memory.batch.size();
      }
    }
    if (isFull && before == released && from == loader) {
      awaitMemory(client, true);
    }
  }

  private void awaitChange(Client client) throws InterruptedException {
    if (!changed.await(CHECK_SECONDS, TimeUnit.SECONDS)) {
      client.check();
    }
  }

  /** The loader's next batch; null if there is no room for one. */
  private Piece.@Nullable Memory memory(Loader from) {
    long ofFile = serial;
    Batch batch = from.nextIfRoom(rank);
    return batch == null
        ? null
        : new Piece.Memory(batch, descriptor, ofFile, () -> locked(() -> countReleased(ofFile)));
  }

  private void countReleased(long ofFile) {
    released++;
    if (ofFile == serial) {
      open--;
    }
  }

  /**
   * Waits until somebody releases a batch.
   *
   * @param isFull there are areas, and no room in the handover. The releases of a client that waits
   *     here are heard only after it is answered, so one that has batches does not wait long
   * @throws NoRoom if none is released then
   */
  private void awaitMemory(Client client, boolean isFull) throws InterruptedException {
    int has = lent.getOrDefault(client, 0);
    int hasOrWaits = has + waiting.values().stream().mapToInt(Integer::intValue).sum();
    if (!held.isEmpty() && hasOrWaits + held.size() >= open && !(isFull && exchanges())) {
      if (exchanges() && open < Handover.MOST_AREAS) {
        spare++;
        grow();
        return;
      }
      // Whoever would ask for these may be gone; if not, they are read again.
      held.pollLastEntry().getValue().release();
      return;
    }
    if (isFull && open == 0 && lent.isEmpty()) {
      throw new NoRoom(inUse()); // clients that have left have all of it
    }
    if (held.isEmpty() && hasOrWaits >= open && !(isFull && has == 0)) {
      throw isFull ? new NoRoom(inUse()) : inUse();
    }
    waiting.put(client, has);
    try {
      if (!isFull || has == 0) {
        awaitChange(client);
      } else if (!changed.await(CHECK_SECONDS, TimeUnit.SECONDS)) {
        throw new NoRoom(inUse());
      }
    } finally {
      waiting.remove(client);
    }
  }

  private Failure inUse() {
    return Failure.wrongCall(
        "all %d batches of rank %d that may be in memory at once are in use, of %d bytes: let go of"
            + " views of earlier batches, or copy what must be kept; of at most %d bytes, which"
            + " handover= makes more",
        open + gone,
        rank,
        loader.handoverBytes(),
        loader.counter(ReadCounter.HANDOVER_LIMIT_BYTES));
  }

  /** Ends a client's use of a piece. */
  void release(Client client, Piece piece) {
    locked(() -> countReturned(client));
    piece.release();
  }

  /** Tells that a client leaves with a piece: nobody gives its batch back while reading goes on. */
  void leaveWith(Client client, Piece piece) {
    locked(
        () -> {
          countReturned(client);
          if (piece.memory().isFirstToStay() && piece.memory().serial == serial) {
            open--;
            gone++;
            grow();
          }
        });
  }

  private void countReturned(Client client) {
    lent.computeIfPresent(client, (_, count) -> count == 1 ? null : count - 1);
  }

  @Override
  public void close() {
    locked(
        () -> {
          closed = true;
          releaseHeld(_ -> true);
        });
    loader.close();
  }
}
