package org.gristway.plan;

import org.gristway.Failure;

/**
 * The ranks of a job and the nodes that they sit on.
 *
 * @param ranks all training processes of the job
 * @param nodes machines; ranks are dealt to them in order, as evenly as possible
 * @param node the one that this is, from 0
 * @param only the one of the node's ranks that is read for, where each has a reader of its own; or
 *     {@link #ALL}
 */
public record World(int ranks, int nodes, int node, int only) {

  /** In place of a rank: all of the node's. */
  public static final int ALL = -1;

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
    if (only != ALL
        && (only < firstRank(nodes, ranks, node) || only >= firstRank(nodes, ranks, node + 1))) {
      throw Failure.wrongCall("node %d of %d has no rank %d", node, nodes, only);
    }
  }

  /** All ranks of a node. */
  public World(int ranks, int nodes, int node) {
    this(ranks, nodes, node, ALL);
  }

  /** The same for a reader of one rank, on whichever node that is. */
  public World only(int rank) {
    return new World(ranks, nodes, nodeOf(rank), rank);
  }

  /** One machine. */
  public static World of(int ranks) {
    return new World(ranks, 1, 0);
  }

  /** The first rank of a node; for the node after the last, the number of ranks. */
  public int firstRank(int ofNode) {
    return firstRank(nodes, ranks, ofNode);
  }

  private static int firstRank(int nodes, int ranks, int ofNode) {
    return (int) ((long) ranks * ofNode / nodes);
  }

  /** The first rank that is read for here. */
  public int firstRank() {
    return only == ALL ? firstRank(node) : only;
  }

  /** The node that a rank sits on. */
  public int nodeOf(int rank) {
    return (int) (((rank + 1L) * nodes - 1) / ranks);
  }

  /** Which of its reader's lanes a rank has, from 0. */
  public int laneOf(int rank) {
    return only == ALL ? rank - firstRank(nodeOf(rank)) : 0;
  }

  /** How many ranks are read for here. */
  public int ranksHere() {
    return only == ALL ? firstRank(node + 1) - firstRank(node) : 1;
  }

  /** The most ranks that are read for at once: what the budget of a reader is divided by. */
  public int mostRanks() {
    return only == ALL ? (ranks + nodes - 1) / nodes : 1;
  }
}
