package org.gristway.simulator;

import java.util.Arrays;
import org.gristway.simulator.CostModel.Network;
import org.gristway.simulator.CostModel.Storage;

/**
 * The machines of a run, as far as their ranks get in each other's way: the store, the network and
 * the disks of the nodes, each a pipe. For one thread.
 */
final class Machines {

  /** In place of a number of reads: before all others that wait. */
  static final int NOW = 0;

  private final CostModel cost;
  private final int ranksPerNode;
  private final Pipe[] readers; // by rank: its part of what a node may read
  private final Pipe[] disks; // by node
  private final Pipe[] out; // by node
  private final Pipe[] in; // by node
  private final Pipe bisection = new Pipe();
  private final boolean[] reads; // by node: in the step at hand
  private double reading;
  private double since; // when the first rank could begin with the step at hand

  long storageBytes;
  long networkBytes;
  long diskBytes;

  Machines(CostModel cost, int nodes, int ranksPerNode) {
    this.cost = cost;
    this.ranksPerNode = ranksPerNode;
    this.readers = pipes(nodes * ranksPerNode);
    this.disks = pipes(nodes);
    this.out = pipes(nodes);
    this.in = pipes(nodes);
    this.reads = new boolean[nodes];
    this.reading = nodes;
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
    reading = count > 0 ? count : reading;
    Arrays.fill(reads, false);
  }

  /**
   * When a rank has read so many bytes from the store.
   *
   * @param atOnce reads that the rank keeps going, or {@link #NOW}
   */
  double read(double now, int rank, long bytes, int atOnce) {
    storageBytes += bytes;
    reads[rank / ranksPerNode] = true;
    Storage storage = cost.storage();
    double own =
        ranksPerNode * bytes / storage.rate(bytes, Math.max(1, atOnce) * ranksPerNode, reading);
    double first = now + storage.alone(bytes, reading);
    double inTurn = readers[rank].pass(now, own);
    return atOnce == NOW ? first : Math.max(first, inTurn);
  }

  /** When a rank has got so many bytes from the memory or the disk of a node. */
  double fetch(double now, int toNode, int fromNode, boolean fromDisk, long bytes) {
    double there = now;
    if (fromDisk) {
      diskBytes += bytes;
      there = disks[fromNode].pass(now, since, bytes / cost.diskRate());
    }
    if (fromNode == toNode) {
      return there;
    }
    networkBytes += bytes;
    Network network = cost.network();
    double sent = out[fromNode].pass(there, since, bytes / network.rate());
    double received = in[toNode].pass(there, since, bytes / network.rate());
    double crossed = bisection.pass(there, since, bytes / network.bisection());
    return network.latency() + Math.max(crossed, Math.max(sent, received));
  }

  /** When so many bytes are on the disk of a node. */
  void write(double now, int node, long bytes) {
    disks[node].pass(now, since, bytes / cost.diskRate());
  }
}
