package org.gristway.peer;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.net.UnknownHostException;
import java.nio.channels.SocketChannel;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.gristway.Failure;
import org.gristway.plan.World;
import org.gristway.read.PeerCaches;
import org.gristway.read.PostOffice;
import org.gristway.snapshot.Snapshot;

/**
 * The connections of a node to all others of its job, over which their ranks push samples to each
 * other. Every pair of nodes has one; whoever has the higher number connects.
 *
 * <p>A node that is not heard of for some seconds is lost, as is one whose connection breaks. The
 * job is over then, for every rank on every node: all waiting ends with a failure that names the
 * node, the other nodes are told, and nothing is planned anew. {@link Peers} has these rules.
 */
public final class Mesh implements AutoCloseable {

  private static final System.Logger LOG = System.getLogger(Mesh.class.getName());

  /** For nodes that are there to be connected. */
  private static final long CONNECTING_SECONDS = 30;

  private static final long RETRY_MILLIS = 100;
  private static final long LEAVING_MILLIS = 5000;
  private static final long MOST_CONNECT_MILLIS = 5000;

  /** Told of: somebody who tries all ports must not fill the logs. */
  private static final int MOST_STRANGERS = 20;

  /** Told what happens. */
  public interface Listener {

    /** The job is over, because a node is lost. Told once, in any thread. */
    void lost(Failure why);

    /** A connection was refused; a line about it. Only the first ones are told, and once each. */
    void refused(String line);
  }

  private final World world;
  private final Greeting greeting;
  private final JobSecret secret;
  private final Listener listener;
  private final Peers peers;
  private final Door door;
  private final List<PeerLink> links = new CopyOnWriteArrayList<>();
  private final Set<String> strangers = new HashSet<>(); // lines about them

  /**
   * Begins to listen.
   *
   * @param world of the job, and which node this is
   * @param batch the samples that a rank delivers at a step
   * @param listenAt where; port 0 for any that is free
   * @param intent that all nodes must have in common, in lines of {@code name=value}
   * @param here what ranks of this node keep, for the others
   */
  public Mesh(
      World world,
      Snapshot snapshot,
      int batch,
      int window,
      InetSocketAddress listenAt,
      JobSecret secret,
      String intent,
      PeerCaches here,
      Listener listener) {
    this.world = world;
    this.greeting = new Greeting(secret, world.node(), intent);
    this.secret = secret;
    this.listener = listener;
    this.peers = new Peers(world, snapshot, batch, window, here, listener::lost);
    try {
      this.door = new Door(listenAt, new Greeter());
    } catch (IOException failed) {
      throw Failure.io("listen at " + text(listenAt), failed);
    }
  }

  /** Where it listens. */
  public InetSocketAddress address() {
    return door.address();
  }

  /** What the ranks of this node push and get samples by. */
  public PostOffice office() {
    return peers.office();
  }

  /** What the ranks of the other nodes keep. */
  public PeerCaches caches() {
    return peers;
  }

  /**
   * Looks for all other nodes and connects to them; returns when every pair of which this is one
   * has greeted.
   *
   * @param job what all its nodes call it
   * @throws Failure if one does not come in time, has another secret, or is about to do something
   *     else
   */
  public void meet(MeetingPoint point, String job, long patienceSeconds)
      throws InterruptedException {
    // Open until all are connected: others may still need this node's card.
    try (Meeting meeting = Meeting.of(world, point, job, address(), secret, this::refuse)) {
      join(meeting.gather(patienceSeconds), CONNECTING_SECONDS);
    }
  }

  /**
   * Connects to all other nodes; returns when every pair of which this is one has greeted.
   *
   * @param addresses of all nodes, by their number
   * @throws Failure if one does not come in time, has another secret, or is about to do something
   *     else
   */
  public void join(List<InetSocketAddress> addresses, long patienceSeconds)
      throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(patienceSeconds);
    peers.areAt(addresses.stream().map(Mesh::text).toList());
    for (int node = 0; node < world.node(); node++) {
      connect(node, addresses.get(node), deadline);
    }
    for (int node = world.node() + 1; node < world.nodes(); node++) {
      if (!peers.awaitConnected(node, deadline)) {
        throw Failure.environment(
            "%s has not come within %d s: is it started, and does it reach this one at %s?",
            peers.name(node), patienceSeconds, text(address()));
      }
    }
    Thread.ofPlatform().name("gristway-watch").daemon().start(this::watch);
  }

  static String text(InetSocketAddress address) {
    return address.getHostString() + ":" + address.getPort();
  }

  private void connect(int node, InetSocketAddress address, long deadline)
      throws InterruptedException {
    while (true) {
      SocketChannel channel = null;
      try {
        channel = SocketChannel.open();
        channel.socket().connect(resolved(address), millisTo(deadline));
        try (TimeLimit limit = new TimeLimit(channel, Door.COMING_MILLIS)) {
          greeting.connect(channel.socket(), node, limit::lift);
        }
        take(node, channel);
        return;
      } catch (MutualProof.OtherSecret refused) {
        Door.close(channel);
        throw Failure.wrongCall(
            "%s has another secret than node %d: set the same GRISTWAY_JOB_SECRET on all machines",
            peers.name(node), world.node());
      } catch (IOException notYet) {
        Door.close(channel);
        if (System.nanoTime() > deadline) {
          throw Failure.io("reach " + peers.name(node), notYet);
        }
      } catch (RuntimeException refused) {
        Door.close(channel);
        throw refused;
      }
      TimeUnit.MILLISECONDS.sleep(RETRY_MILLIS);
    }
  }

  /** Names are looked up anew, since they may only be known when a machine has come up. */
  static InetSocketAddress resolved(InetSocketAddress address) throws IOException {
    InetSocketAddress now =
        address.isUnresolved()
            ? new InetSocketAddress(address.getHostString(), address.getPort())
            : address;
    if (now.isUnresolved()) {
      throw new UnknownHostException("there is no host " + address.getHostString());
    }
    return now;
  }

  private static int millisTo(long deadline) {
    return (int) Math.clamp((deadline - System.nanoTime()) / 1_000_000, 1, MOST_CONNECT_MILLIS);
  }

  private static void pause() {
    try {
      TimeUnit.MILLISECONDS.sleep(RETRY_MILLIS);
    } catch (InterruptedException now) {
      Thread.currentThread().interrupt();
    }
  }

  /** Lets nodes of the job in that have a higher number. */
  private final class Greeter implements Door.Porter {

    @Override
    public void hear(Door.Visit visit) throws IOException {
      try {
        int node = greeting.accept(visit.socket(), visit::proven);
        if (node <= world.node() || node >= world.nodes() || peers.isConnected(node)) {
          throw new MutualProof.Stranger("it says that it is node " + node);
        }
        visit.letIn();
        take(node, visit.channel());
      } catch (Failure differs) {
        Door.close(visit.channel());
        peers.fail(differs);
      }
    }

    @Override
    public void refused(String host, IOException why) {
      refuse("a connection from " + host + " is refused: " + Failure.reason(why));
    }
  }

  private void refuse(String line) {
    synchronized (strangers) {
      if (strangers.size() == MOST_STRANGERS || !strangers.add(line)) {
        return;
      }
    }
    LOG.log(System.Logger.Level.WARNING, line);
    listener.refused(line);
  }

  private void take(int node, SocketChannel channel) throws IOException {
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    PeerLink link = new PeerLink(channel, "node-" + node, peers.listener(node));
    links.add(link);
    if (!peers.connect(node, link)) {
      channel.close();
    }
  }

  /** Looks after peers of which nothing is heard: those that hang, or cannot be reached. */
  private void watch() {
    while (peers.watch(System.nanoTime())) {
      pause();
    }
  }

  /**
   * Says good-bye to all peers and ends the connections. No rank of this node may push or wait any
   * more.
   */
  @Override
  public void close() {
    if (!peers.leave()) {
      return;
    }
    door.close();
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LEAVING_MILLIS);
    try {
      for (PeerLink link : links) {
        link.close(Math.max(1, (deadline - System.nanoTime()) / 1_000_000));
      }
    } catch (InterruptedException hurry) {
      Thread.currentThread().interrupt();
    }
    for (PeerLink link : links) {
      link.abort();
      link.join();
    }
    peers.office().close();
  }
}
