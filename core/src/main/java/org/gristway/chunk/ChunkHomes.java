package org.gristway.chunk;

import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.function.IntToLongFunction;

/**
 * The node that each chunk of a dataset is placed on, where each node's disk holds a part of it.
 * Chunks are dealt in their order, each to the node that has the fewest bytes by then, and of those
 * to the first: nodes differ by no more than the largest chunk. A version that is added leaves the
 * chunks of those before it where they are.
 *
 * <p>It is all that {@code place} and plans must agree on.
 */
public final class ChunkHomes {

  private record Node(int number, long bytes) {}

  private final int[] nodes;

  private ChunkHomes(int[] nodes) {
    this.nodes = nodes;
  }

  /**
   * Deals chunks to nodes.
   *
   * @param bytes of the samples in a chunk, by its number
   */
  public static ChunkHomes deal(int chunks, IntToLongFunction bytes, int nodes) {
    PriorityQueue<Node> byBytes =
        new PriorityQueue<>(Comparator.comparingLong(Node::bytes).thenComparingInt(Node::number));
    for (int node = 0; node < nodes; node++) {
      byBytes.add(new Node(node, 0));
    }
    int[] dealt = new int[chunks];
    for (int chunk = 0; chunk < chunks; chunk++) {
      Node least = byBytes.remove();
      dealt[chunk] = least.number();
      byBytes.add(new Node(least.number(), least.bytes() + bytes.applyAsLong(chunk)));
    }
    return new ChunkHomes(dealt);
  }

  /** The node that has a chunk, from 0. */
  public int nodeOf(int chunk) {
    return nodes[chunk];
  }
}
