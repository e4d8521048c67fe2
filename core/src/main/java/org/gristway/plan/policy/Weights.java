package org.gristway.plan.policy;

/**
 * Numbered weights from which one is drawn in proportion: a binary indexed tree (Fenwick, 1994), so
 * that a draw and a change each take a step per bit of the count.
 */
final class Weights {

  private final long[] tree; // tree[i]: the sum of the weights that i's lowest bit spans
  private final int top;

  Weights(int capacity) {
    this.tree = new long[capacity + 1];
    this.top = Integer.highestOneBit(Math.max(1, capacity));
  }

  void add(int index, long weight) {
    for (int i = index + 1; i < tree.length; i += i & -i) {
      tree[i] += weight;
    }
  }

  /** The index whose stretch of the weights, laid end to end, holds {@code at}. */
  int find(long at) {
    int index = 0;
    long left = at;
    for (int bit = top; bit > 0; bit >>= 1) {
      int next = index + bit;
      if (next < tree.length && tree[next] <= left) {
        index = next;
        left -= tree[next];
      }
    }
    return index;
  }
}
