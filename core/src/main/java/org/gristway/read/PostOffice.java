package org.gristway.read;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongConsumer;
import org.gristway.Failure;
import org.gristway.plan.Exchange;
import org.jspecify.annotations.Nullable;

/**
 * What the ranks of a node push to each other and to those of other nodes: the parcels that wait
 * for their step, and how far every rank of the job has come. It outlives what reads for a rank, so
 * that a rank may go on at a later step while parcels for it are under way. Any thread may call.
 */
public final class PostOffice implements AutoCloseable {

  /** Takes things to other nodes. */
  public interface Carrier {

    /**
     * Takes a parcel to a rank of another node, in the order in which parcels for that rank are
     * given; {@link PostOffice#sent} is called when it is on its way. Does not wait.
     */
    void carry(Parcel parcel);

    /** Tells all other nodes how far a rank of this one has come. */
    void tell(int rank, Place place);

    /** Tells all other nodes that this one gives the job up. */
    void giveUp(Failure why);
  }

  /** How far a rank has come: the last step that it is done with, -1 before an epoch's first. */
  public record Place(long epoch, long step) {

    boolean isBefore(long otherEpoch, long otherStep) {
      return epoch < otherEpoch || (epoch == otherEpoch && step < otherStep);
    }
  }

  /** Where a rank is that does nothing more. */
  private static final Place GONE = new Place(Long.MAX_VALUE, -1);

  private record Address(int from, int to, long epoch, long step) {
    static Address of(Parcel parcel) {
      return new Address(parcel.from(), parcel.to(), parcel.epoch(), parcel.step());
    }
  }

  /** Who is told what waits for the ranks from one to before another. */
  private record Follower(int first, int end, LongConsumer told) {
    boolean follows(int rank) {
      return rank >= first && rank < end;
    }
  }

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final int firstRank;
  private final int ranksHere;
  private final int window; // steps
  private final int room; // the same
  private final Carrier carrier;
  private final Place[] places; // by rank, of the whole job
  private final Map<Address, Parcel> waiting = new HashMap<>();
  private final ArrayDeque<Parcel> idle = new ArrayDeque<>();
  private final List<Parcel> all = new ArrayList<>();
  private long waitingBytes;
  private long mostWaitingBytes;
  private final List<Follower> followers = new ArrayList<>();
  private final @Nullable String[] left; // by rank: the node that has left with it
  // Why ranks could not go on: others had left, or were past what they waited for.
  private final Set<Failure> leftBehind = Collections.newSetFromMap(new IdentityHashMap<>());
  private final Set<Failure> passed = Collections.newSetFromMap(new IdentityHashMap<>());
  private @Nullable Failure failure;

  /**
   * @param ranks of the job
   * @param firstRank of this node
   * @param ranksHere how many this node has
   * @param window how many steps ahead is pushed
   * @param carrier to other nodes
   */
  public PostOffice(int ranks, int firstRank, int ranksHere, int window, Carrier carrier) {
    this.firstRank = firstRank;
    this.ranksHere = ranksHere;
    this.window = window;
    this.room = Exchange.room(window);
    this.carrier = carrier;
    this.places = new Place[ranks];
    Arrays.fill(places, new Place(0, -1));
    this.left = new String[ranks];
  }

  /** For a job whose ranks are all on one node. */
  public static PostOffice alone(int ranks, int window) {
    return new PostOffice(ranks, 0, ranks, window, Nowhere.NOWHERE);
  }

  private enum Nowhere implements Carrier {
    NOWHERE;

    @Override
    public void carry(Parcel parcel) {
      throw new IllegalStateException("there is no other node");
    }

    @Override
    public void tell(int rank, Place place) {}

    @Override
    public void giveUp(Failure why) {}
  }

  /** The end of a rank of this node. */
  public Post rank(int rank) {
    return new RankPost(rank);
  }

  /** How many steps ahead is pushed. */
  public int window() {
    return window;
  }

  /**
   * Tells that a rank of this node goes on at a step: what was pushed for those before is lost.
   *
   * @throws Failure (wrong call) if it was further already: nobody pushes anything twice
   */
  public void goOn(int rank, long epoch, long step) {
    refuseBack(rank, epoch, step);
    Place place = new Place(epoch, step - 1);
    moved(rank, place);
    carrier.tell(rank, place);
  }

  /**
   * Refuses to have a rank of this node go on at a step that it is past.
   *
   * @throws Failure (wrong call) if it was further already; (environment) if it has left
   */
  public void refuseBack(int rank, long epoch, long step) {
    lock.lock();
    try {
      if (places[rank].equals(GONE)) {
        throw Failure.environment(
            "rank %d has left this job, and nobody pushes anything to it: start the job again from its"
                + " last state",
            rank);
      }
      if (new Place(epoch, step - 1).isBefore(places[rank].epoch(), places[rank].step())) {
        throw Failure.wrongCall(
            "rank %d goes back to step %d of epoch %d: ranks that mix what they read only go forward;"
                + " load a state on all of them to go back",
            rank, step, epoch);
      }
    } finally {
      lock.unlock();
    }
  }

  /** Tells that a rank of this node does nothing more: nobody is to wait for it. */
  public void leave(int rank) {
    moved(rank, GONE);
    carrier.tell(rank, GONE);
  }

  /**
   * Tells why a rank of this node cannot go on from where it is. If it waited for another that has
   * left, it leaves too: others may have all that they want. If that has only gone on, so may this
   * one, in its turn. Anything else ends the job.
   */
  public void ended(int rank, Failure why) {
    boolean hasLeft;
    lock.lock();
    try {
      hasLeft = leftBehind.contains(why);
    } finally {
      lock.unlock();
    }
    if (hasLeft) {
      leave(rank);
    } else if (!isPassed(why)) {
      giveUp(why);
    }
  }

  /** True if a rank has failed because it waited for another that has gone on to a later step. */
  public boolean isPassed(Failure why) {
    lock.lock();
    try {
      return passed.contains(why);
    } finally {
      lock.unlock();
    }
  }

  /** Ends the job, for all ranks of all nodes: a rank of this one cannot go on. */
  public void giveUp(Failure why) {
    fail(why);
    carrier.giveUp(why);
  }

  /** An empty parcel, for what comes from another node. */
  public Parcel parcel(int from, int to, long epoch, long step) {
    lock.lock();
    try {
      Parcel parcel = idle.poll();
      if (parcel == null) {
        parcel = new Parcel();
        all.add(parcel);
      }
      parcel.begin(from, to, epoch, step);
      return parcel;
    } finally {
      lock.unlock();
    }
  }

  /** Takes a parcel that has come for a rank of this node; one that comes too late is dropped. */
  public void arrived(Parcel parcel) {
    lock.lock();
    try {
      boolean isStale = !places[parcel.to()].isBefore(parcel.epoch(), parcel.step());
      if (isStale || failure != null) {
        idle.add(parcel);
        return;
      }
      if (waiting.putIfAbsent(Address.of(parcel), parcel) != null) {
        idle.add(parcel); // the first one may be read by now
        return;
      }
      addWaiting(parcel.to(), parcel.bytes());
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Takes a parcel back that has been carried away. */
  public void sent(Parcel parcel) {
    lock.lock();
    try {
      idle.add(parcel);
    } finally {
      lock.unlock();
    }
  }

  /** Tells how far a rank has come. */
  public void moved(int rank, Place place) {
    lock.lock();
    try {
      places[rank] = place;
      waiting
          .values()
          .removeIf(
              parcel -> {
                boolean isOver =
                    parcel.to() == rank && !place.isBefore(parcel.epoch(), parcel.step());
                if (isOver) {
                  addWaiting(rank, -parcel.bytes());
                  idle.add(parcel);
                }
                return isOver;
              });
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Tells that a node is done: nothing more comes from its ranks, and they need nothing more.
   *
   * @param node what it is called
   */
  public void left(int first, int end, String node) {
    lock.lock();
    try {
      Arrays.fill(left, first, end, node);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Ends all waiting: a node of the job is lost. The first reason is the one that is told. */
  public void fail(Failure why) {
    lock.lock();
    try {
      if (failure == null) {
        failure = why;
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** The bytes of parcels that wait for their step. */
  public long waitingBytes() {
    lock.lock();
    try {
      return waitingBytes;
    } finally {
      lock.unlock();
    }
  }

  /** The most that these have been. */
  public long mostWaitingBytes() {
    lock.lock();
    try {
      return mostWaitingBytes;
    } finally {
      lock.unlock();
    }
  }

  private void addWaiting(int rank, long bytes) {
    waitingBytes += bytes;
    mostWaitingBytes = Math.max(mostWaitingBytes, waitingBytes);
    for (Follower follower : followers) {
      if (follower.follows(rank)) {
        follower.told().accept(bytes);
      }
    }
  }

  /**
   * Tells what waits now for some ranks, and from then on what is added to it, or taken away. It is
   * told while nothing else can happen here, and must not wait for anything.
   *
   * @param end the rank after the last
   */
  void follow(int first, int end, LongConsumer told) {
    Follower follower = new Follower(first, end, told);
    lock.lock();
    try {
      followers.add(follower);
      for (Parcel parcel : waiting.values()) {
        if (follower.follows(parcel.to())) {
          told.accept(parcel.bytes());
        }
      }
    } finally {
      lock.unlock();
    }
  }

  /** Ends that. */
  void unfollow(LongConsumer told) {
    lock.lock();
    try {
      followers.removeIf(follower -> follower.told().equals(told));
    } finally {
      lock.unlock();
    }
  }

  private void refuseLost() {
    Failure why = failure;
    if (why != null) {
      throw why;
    }
  }

  /** True if a rank has room for what is pushed for a step. */
  public boolean hasRoom(int to, long epoch, long step) {
    lock.lock();
    try {
      Place place = places[to];
      return left[to] != null
          || place.epoch() > epoch
          || (place.epoch() == epoch && step - room <= place.step());
    } finally {
      lock.unlock();
    }
  }

  private boolean isHere(int rank) {
    return rank >= firstRank && rank < firstRank + ranksHere;
  }

  /** Gives all memory back. No rank may use it any more. */
  @Override
  public void close() {
    lock.lock();
    try {
      all.forEach(Parcel::close);
      all.clear();
      idle.clear();
      waiting.clear();
    } finally {
      lock.unlock();
    }
  }

  private final class RankPost implements Post {

    private final int rank;

    RankPost(int rank) {
      this.rank = rank;
    }

    @Override
    public Parcel begin(int to, long epoch, long step) throws InterruptedException {
      lock.lock();
      try {
        while (!hasRoom(to, epoch, step)) {
          refuseLost();
          changed.await();
        }
        refuseLost();
        return parcel(rank, to, epoch, step);
      } finally {
        lock.unlock();
      }
    }

    @Override
    public void send(Parcel parcel) {
      if (isHere(parcel.to())) {
        arrived(parcel);
      } else {
        carrier.carry(parcel);
      }
    }

    @Override
    public @Nullable Parcel poll(int from, long epoch, long step) {
      lock.lock();
      try {
        return waiting.get(new Address(from, rank, epoch, step));
      } finally {
        lock.unlock();
      }
    }

    @Override
    public Parcel await(int from, long epoch, long step) throws InterruptedException {
      Address address = new Address(from, rank, epoch, step);
      lock.lock();
      try {
        Parcel parcel = waiting.get(address);
        while (parcel == null) {
          refuseLost();
          // What it pushes for a step comes before it tells that it is done with it.
          if (left[from] != null || !places[from].isBefore(epoch, step)) {
            throw gone(from, epoch, step);
          }
          changed.await();
          parcel = waiting.get(address);
        }
        return parcel;
      } finally {
        lock.unlock();
      }
    }

    private Failure gone(int from, long epoch, long step) {
      String node = left[from];
      String who = node != null ? node : "rank " + from;
      boolean hasLeft = node != null || places[from].equals(GONE);
      Failure why =
          Failure.environment(
              "%s has %s, and rank %d waits for what it would have pushed for step %d of epoch %d: do"
                  + " all ranks take the same steps, from the same state?",
              who, hasLeft ? "left the job" : "gone on without it", rank, step, epoch);
      (hasLeft ? leftBehind : passed).add(why);
      return why;
    }

    @Override
    public void done(long epoch, long step) {
      goOn(rank, epoch, step + 1);
    }
  }
}
