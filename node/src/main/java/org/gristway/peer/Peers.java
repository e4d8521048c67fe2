package org.gristway.peer;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.plan.Caching;
import org.gristway.plan.World;
import org.gristway.read.Parcel;
import org.gristway.read.PeerCaches;
import org.gristway.read.PostOffice;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * What a node knows of the others of its job: who is there, who is done, and whether one is lost;
 * and what it does about it. It has no sockets, and whoever watches with it tells it the time, so
 * that whole jobs can be simulated with it. Any thread may call.
 */
final class Peers implements PostOffice.Carrier, PeerCaches {

  /** Without a sign of life, after which a node is lost. */
  static final long SILENCE_NANOS = 6_000_000_000L;

  /** How long a node that has nothing to say keeps silent before it gives a sign of life. */
  static final long SIGN_NANOS = 500_000_000L;

  /** Between two looks, after which it is this node that has stood still. */
  private static final long STANDSTILL_NANOS = SILENCE_NANOS / 2;

  /** For a sample that another node keeps: a store that is asked instead answers sooner. */
  private static final long FETCH_NANOS = 5_000_000_000L;

  private final World world;
  private final Snapshot snapshot;
  private final int batch;
  private final PeerCaches here;
  private final PostOffice office;
  private final Consumer<Failure> lost;
  private final @Nullable Line[] lines; // by node
  private final boolean[] left; // by node: those that are done
  private final String[] names; // by node
  private @Nullable Failure failure;
  private boolean closed;
  private @Nullable Long looked; // when this node last looked for others
  private @Nullable Long woken; // when it last went on after a standstill

  /**
   * @param world of the job, and which node this is
   * @param batch the samples that a rank delivers at a step
   * @param here what ranks of this node keep, for the others
   * @param lost told once if the job is over
   */
  Peers(
      World world,
      Snapshot snapshot,
      int batch,
      int window,
      PeerCaches here,
      Consumer<Failure> lost) {
    this.world = world;
    this.here = here;
    this.snapshot = snapshot;
    this.batch = batch;
    this.lost = lost;
    this.lines = new Line[world.nodes()];
    this.left = new boolean[world.nodes()];
    this.names = new String[world.nodes()];
    Arrays.setAll(names, node -> "node " + node);
    this.office = new PostOffice(world.ranks(), world.firstRank(), world.ranksHere(), window, this);
  }

  /** What the ranks of this node push and get samples by. */
  PostOffice office() {
    return office;
  }

  /** Says where the nodes are, by their number: failures name it. */
  synchronized void areAt(List<String> addresses) {
    Arrays.setAll(names, node -> "node " + node + " at " + addresses.get(node));
  }

  synchronized String name(int node) {
    return names[node];
  }

  /** Begins to talk to a node; false if there is a line to it already, or this node is done. */
  synchronized boolean connect(int node, Line line) {
    if (closed || lines[node] != null) {
      return false;
    }
    lines[node] = line;
    line.start();
    if (failure != null) {
      line.lost(String.valueOf(failure.getMessage())); // it has come too late to be told with all
    }
    notifyAll();
    return true;
  }

  synchronized boolean isConnected(int node) {
    return lines[node] != null;
  }

  /**
   * Waits for a node to be connected; false if the time is up.
   *
   * @param deadline by {@link System#nanoTime}
   * @throws Failure if the job is over before
   */
  synchronized boolean awaitConnected(int node, long deadline) throws InterruptedException {
    while (lines[node] == null) {
      if (failure != null) {
        throw failure;
      }
      long leftNanos = deadline - System.nanoTime();
      if (leftNanos <= 0) {
        return false;
      }
      wait(Math.max(1, leftNanos / 1_000_000));
    }
    return true;
  }

  /**
   * Looks for nodes of which nothing is heard, also when the job is over: somebody may wait for the
   * rest of what one was saying. False when there is no point in it any more. One thread calls it,
   * often. If it has not, this node has stood still, and what the others have said meanwhile is yet
   * to be heard: most likely that this one is lost.
   */
  boolean watch(long now) {
    if (looked != null && now - looked > STANDSTILL_NANOS) {
      woken = now;
    }
    looked = now;
    for (int node = 0; node < lines.length; node++) {
      Line line = line(node);
      if (line != null
          && now - line.heard() > SILENCE_NANOS
          && (woken == null || now - woken > SILENCE_NANOS)) {
        fail(
            Failure.environment(
                "%s is lost: nothing was heard of it for %d s; start the job again from its last"
                    + " state",
                name(node), SILENCE_NANOS / 1_000_000_000));
        line.stopHearing();
      }
    }
    return !isClosed();
  }

  private synchronized boolean isClosed() {
    return closed;
  }

  private synchronized boolean isGoing() {
    return !closed && failure == null;
  }

  /** The line to a node that is there and not done. */
  private synchronized @Nullable Line line(int node) {
    return left[node] ? null : lines[node];
  }

  /** Ends the job: every rank of every node gets to know why. */
  void fail(Failure why) {
    synchronized (this) {
      if (!isGoing()) {
        return;
      }
      failure = why;
      notifyAll();
    }
    lost.accept(why);
    office.fail(why);
    for (int node = 0; node < lines.length; node++) {
      Line line = line(node);
      if (line != null) {
        line.lost(String.valueOf(why.getMessage()));
      }
    }
  }

  /** Says good-bye to all; false if that was done before. */
  boolean leave() {
    synchronized (this) {
      if (closed) {
        return false;
      }
      closed = true;
      notifyAll();
    }
    for (Line line : lines) {
      if (line != null) {
        line.bye();
      }
    }
    return true;
  }

  @Override
  public void giveUp(Failure why) {
    fail(
        Failure.environment(
            "%s has given the job up: %s", name(world.node()), String.valueOf(why.getMessage())));
  }

  @Override
  public void carry(Parcel parcel) {
    Line line = line(world.nodeOf(parcel.to()));
    if (line == null) {
      office.sent(parcel); // a node that is done has no use for it
    } else {
      line.send(parcel);
    }
  }

  @Override
  public void tell(int rank, PostOffice.Place place) {
    for (int node = 0; node < lines.length; node++) {
      Line line = line(node);
      if (line != null) {
        line.moved(rank, place);
      }
    }
  }

  @Override
  public boolean fetch(int rank, long sample, int tier, MemorySegment target) {
    Line line = line(world.nodeOf(rank));
    if (line == null || !isGoing()) {
      return false;
    }
    Wanted wanted = new Wanted(rank, sample, tier, target);
    line.ask(wanted);
    return wanted.await(FETCH_NANOS);
  }

  /** What is done about what a node says. */
  PeerListener listener(int node) {
    return new FromPeer(node);
  }

  private final class FromPeer implements PeerListener {

    private final int node;

    FromPeer(int node) {
      this.node = node;
    }

    private void checkRank(int rank, int ofNode) throws IOException {
      if (rank < 0 || rank >= world.ranks() || world.nodeOf(rank) != ofNode) {
        throw new IOException("it speaks of rank " + rank + ", which node " + ofNode + " has not");
      }
    }

    @Override
    public void moved(int rank, PostOffice.Place place) throws IOException {
      checkRank(rank, node);
      if (place.epoch() < 0 || place.step() < -1) {
        throw new IOException("it speaks of " + place);
      }
      office.moved(rank, place);
    }

    @Override
    public Parcel parcel(int from, int to, long epoch, long step) throws IOException {
      checkRank(from, node);
      checkRank(to, world.node());
      if (epoch < 0 || step < 0 || !office.hasRoom(to, epoch, step)) {
        throw new IOException(
            String.format(
                "it pushes for step %d of epoch %d, for which rank %d has no room",
                step, epoch, to));
      }
      return office.parcel(from, to, epoch, step);
    }

    @Override
    public void check(int position, long sample, long length) throws IOException {
      if (position < 0 || position >= batch) {
        throw new IOException("it pushes a sample for place " + position + " of " + batch);
      }
      if (sample < 0
          || sample >= snapshot.sampleCount()
          || (length != Parcel.DAMAGED && length != snapshot.length(sample))) {
        throw new IOException("it pushes " + length + " bytes of sample " + sample);
      }
    }

    @Override
    public void checkFetch(int rank, long sample, int tier) throws IOException {
      checkRank(rank, world.node());
      if (sample < 0 || sample >= snapshot.sampleCount() || !Caching.isTier(tier)) {
        throw new IOException("it wants sample " + sample + " of tier " + tier);
      }
    }

    @Override
    public long length(long sample) {
      return snapshot.length(sample);
    }

    @Override
    public boolean copyKept(int rank, long sample, int tier, MemorySegment target) {
      return here.fetch(rank, sample, tier, target);
    }

    @Override
    public void arrived(Parcel parcel) {
      office.arrived(parcel);
    }

    @Override
    public void sent(Parcel parcel) {
      office.sent(parcel);
    }

    @Override
    public void left() {
      Line line;
      synchronized (Peers.this) {
        left[node] = true;
        line = lines[node];
      }
      office.left(world.firstRank(node), world.firstRank(node + 1), name(node));
      if (line != null) {
        line.abort(); // it waits for that
      }
    }

    @Override
    public void lost(String why) {
      fail(Failure.environment("%s", why));
    }

    @Override
    public void broken(Exception why) {
      if (line(node) == null) {
        return; // it is done
      }
      fail(
          Failure.environment(
              "%s is lost: %s; start the job again from its last state",
              name(node), String.valueOf(why.getMessage())));
    }
  }
}
