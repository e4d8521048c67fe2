package org.gristway.simulator;

import java.util.Arrays;
import org.gristway.simulator.CostModel.Network;

/**
 * The machines of a run, as far as their ranks get in each other's way: the store, the network and
 * the disks of the nodes, each a pipe. For one thread.
 */
final class Machines {

  /** In place of a number of reads: before all others that wait. */
  static final int NOW = 0;

  private final CostModel cost;
  private final int ranksPerNode;
  private final double scale; // nodes that each stands for
  private final Pipe[] readers; // by rank: its part of what a node may read
  private final Pipe[] disks; // by node
  private final Pipe[] out; // by node
  private final Pipe[] in; // by node
  private final Pipe bisection = new Pipe();
  private final boolean[] reads; // by node: in the step at hand
  private CostModel.Shared storage; // by the nodes that read in the step at hand
  private double since; // when the first rank could begin with the step at hand

  private final long[] storageBytes; // by node: read from the store
  private final long[] networkBytes; // by node: received from others

  Machines(Scenario scenario, NodeSample sample) {
    int nodes = scenario.nodes();
    this.cost = scenario.cost();
    this.ranksPerNode = scenario.ranksPerNode();
    this.scale = sample.scale();
    this.readers = pipes(nodes * ranksPerNode);
    this.disks = pipes(nodes);
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
    since = first;
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
   * When a rank has read so many bytes from the store.
   *
   * @param atOnce reads that the rank keeps going, or {@link #NOW}
   */
  double read(double now, int rank, long bytes, int atOnce) {
    countRead(rank, bytes);
    reads[rank / ranksPerNode] = true;
    double rate = storage.rate(bytes, Math.max(1, atOnce) * ranksPerNode);
    double own = ranksPerNode * bytes / rate;
    double first = now + storage.alone(bytes);
    double inTurn = readers[rank].pass(now, own);
    return atOnce == NOW ? first : Math.max(first, inTurn);
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
    if (near) {
      return there;
    }
    networkBytes[toNode] += bytes;
    Network network = cost.network();
    double sent = out[fromNode].pass(there, since, asked / network.rate());
    double received = in[toNode].pass(there, since, bytes / network.rate());
    double crossed = bisection.pass(there, since, asked / network.bisection());
    return network.latency() + Math.max(crossed, Math.max(sent, received));
  }

  /** When so many bytes are on the disk of a node. */
  void write(double now, int node, long bytes) {
    disks[node].pass(now, since, bytes / cost.diskRate());
  }
}
