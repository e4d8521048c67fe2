package org.gristway.plan;

import org.gristway.Failure;

/**
 * The ranks of a job and the nodes that they sit on.
 *
 * @param ranks all training processes of the job
 * @param nodes machines; ranks are dealt to them in order, as evenly as possible
 * @param node the one that this is, from 0
 */
public record World(int ranks, int nodes, int node) {

  /** More than anyone has, and few enough to keep a number for each. */
  static final int MOST_RANKS = 1 << 20;

  public World {
    if (ranks < 1
        || ranks > MOST_RANKS
        || nodes < 1
        || nodes > ranks
        || node < 0
        || node >= nodes) {
      throw Failure.wrongCall(
          "there cannot be %d ranks on %d nodes: each node needs a rank or more", ranks, nodes);
    }
  }

  /** One machine. */
  public static World of(int ranks) {
    return new World(ranks, 1, 0);
  }

  /** The first rank of a node; for the node after the last, the number of ranks. */
  public int firstRank(int ofNode) {
    return (int) ((long) ranks * ofNode / nodes);
  }

  /** The first rank on this node. */
  public int firstRank() {
    return firstRank(node);
  }

  /** The node that a rank sits on. */
  public int nodeOf(int rank) {
    return (int) (((rank + 1L) * nodes - 1) / ranks);
  }

  /** Which of its node's lanes a rank has, from 0. */
  public int laneOf(int rank) {
    return rank - firstRank(nodeOf(rank));
  }

  /** How many ranks this node has. */
  public int ranksHere() {
    return firstRank(node + 1) - firstRank(node);
  }

  /** The most ranks that a node has: what the budget of a machine is divided by. */
  public int mostRanks() {
    return (ranks + nodes - 1) / nodes;
  }
}
