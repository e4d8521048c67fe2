package org.gristway.simulator;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gristway.simulator.CostModel.Network;

/**
 * The machines of a run, as far as their ranks get in each other's way: the store, the network, the
 * disks and the processors of the nodes, each a pipe. For one thread.
 */
final class Machines {

  /** In place of a number of reads: before all others that wait. */
  static final int NOW = 0;

  private final CostModel cost;
  private final int ranksPerNode;
  private final double scale; // nodes that each stands for
  private final Pipe[] readers; // by rank: its part of what a node may read
  private final List<ArrayDeque<Double>> underWay = new ArrayList<>(); // by rank: when reads end
  private final Pipe[] disks; // by node
  private final Pipe[] processors; // by node: all of them together
  private final Pipe[] out; // by node
  private final Pipe[] in; // by node
  private final Pipe bisection = new Pipe();
  private final boolean[] reads; // by node: in the step at hand
  private CostModel.Shared storage; // by the nodes that read in the step at hand
  private double since; // when the first rank could begin with what is at hand

  private final long[] storageBytes; // by node: read from the store
  private final long[] networkBytes; // by node: received from others

  Machines(Scenario scenario, NodeSample sample) {
    int nodes = scenario.nodes();
    this.cost = scenario.cost();
    this.ranksPerNode = scenario.ranksPerNode();
    this.scale = sample.scale();
    this.readers = pipes(nodes * ranksPerNode);
    for (int rank = 0; rank < readers.length; rank++) {
      underWay.add(new ArrayDeque<>());
    }
    this.disks = pipes(nodes);
    this.processors = pipes(nodes);
    this.out = pipes(nodes);
    this.in = pipes(nodes);
    this.reads = new boolean[nodes];
    this.storage = cost.storage().by(nodes);
    this.storageBytes = new long[nodes];
    this.networkBytes = new long[nodes];
  }

  private static Pipe[] pipes(int count) {
    Pipe[] pipes = new Pipe[count];
    Arrays.setAll(pipes, _ -> new Pipe());
    return pipes;
  }

  /**
   * Begins a step. The nodes that have read in the one before share the store in this one.
   *
   * @param first when the first rank could begin with it
   */
  void beginStep(double first) {
    beginPart(first);
    int count = 0;
    for (boolean each : reads) {
      count += each ? 1 : 0;
    }
    if (count > 0 && storage.readers() != scale * count) {
      storage = cost.storage().by(scale * count);
    }
    Arrays.fill(reads, false);
  }

  /**
   * Begins a part of a step, with which all ranks are done before one begins with the next.
   *
   * @param first when the first rank could begin with it
   */
  void beginPart(double first) {
    since = first;
  }

  /**
   * When a rank has read so many bytes from the store.
   *
   * @param atOnce reads that the rank keeps going, or {@link #NOW}
   */
  double read(double now, int rank, long bytes, int atOnce) {
    countRead(rank, bytes);
    reads[rank / ranksPerNode] = true;
    double rate = storage.rate(bytes, Math.max(1, atOnce) * ranksPerNode);
    double own = ranksPerNode * bytes / rate / cost.storage().byDepth().at(depth(now, rank));
    double first = now + storage.alone(bytes);
    double inTurn = readers[rank].pass(now, own);
    double worked = work(now, rank, bytes / cost.storage().perProcessor().at(bytes));
    double done =
        Math.max(worked, atOnce == NOW ? Math.max(first, now + own) : Math.max(first, inTurn));
    underWay.get(rank).add(done);
    return done;
  }

  /** How many reads a node has under way if one of its ranks begins another, as all of them do. */
  private int depth(double now, int rank) {
    ArrayDeque<Double> ends = underWay.get(rank);
    while (!ends.isEmpty() && ends.peek() <= now) {
      ends.remove();
    }
    return Math.min(cost.storage().depth(), ranksPerNode * (1 + ends.size()));
  }

  /**
   * When a rank has done what takes one processor some time: later than that, if the processors of
   * its node have more to do than there are of them.
   */
  double work(double now, int rank, double seconds) {
    double shared = seconds / cost.processors();
    return shared == 0
        ? now + seconds
        : Math.max(now + seconds, processors[rank / ranksPerNode].pass(now, since, shared));
  }

  /** Counts what a rank has read from the store in a time that is found in another way. */
  void countRead(int rank, long bytes) {
    storageBytes[rank / ranksPerNode] += bytes;
  }

  /** By node: bytes read from the store so far. */
  long[] storageBytes() {
    return storageBytes;
  }

  /** By node: bytes received from other nodes so far. */
  long[] networkBytes() {
    return networkBytes;
  }

  /** When a rank has got so many bytes from the memory or the disk of a node. */
  double fetch(double now, int toNode, int fromNode, boolean fromDisk, long bytes) {
    double there = now;
    boolean near = fromNode == toNode;
    // What others ask a node for that are not simulated, is asked of it by those that are.
    double asked = near ? bytes : scale * bytes;
    if (fromDisk) {
      there = disks[fromNode].pass(now, since, asked / cost.diskRate());
    }
    return near ? there : cross(there, since, toNode, fromNode, bytes, asked);
  }

  /**
   * When bytes that a node pushes to another have come there. To be called in the order of time.
   */
  double push(double now, int toNode, int fromNode, long bytes) {
    return fromNode == toNode ? now : cross(now, now, toNode, fromNode, bytes, bytes);
  }

  private double cross(
      double now, double first, int toNode, int fromNode, long bytes, double asked) {
    networkBytes[toNode] += bytes;
    Network network = cost.network();
    double sent = out[fromNode].pass(now, first, asked / network.rate());
    double received = in[toNode].pass(now, first, bytes / network.rate());
    double crossed = bisection.pass(now, first, asked / network.bisection());
    return network.latency() + Math.max(crossed, Math.max(sent, received));
  }

  /** Writes so many bytes to the disk of a node, which has the less time for others. */
  void write(double now, int node, long bytes) {
    disks[node].pass(now, since, bytes / cost.diskRate());
  }
}
