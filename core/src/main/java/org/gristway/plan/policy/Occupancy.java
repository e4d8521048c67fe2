package org.gristway.plan.policy;

/**
 * How much of a tier is taken at each time, in slots of time. Room is taken for stretches of time
 * that end later and later; to take some, or to find that there is none, costs a logarithm of the
 * number of slots. For one thread.
 */
final class Occupancy {

  private final long capacity;
  // A tree, root 1, whose last nodes are the slots.
  private final int firstSlot;
  private final long[] taken; // in every slot of a node, beside what is taken in those above
  private final long[] most; // in a slot of the node, beside what is taken in those above

  Occupancy(int slots, long capacity) {
    this.capacity = capacity;
    this.firstSlot = Integer.highestOneBit(2 * slots); // more than there are: one is behind all
    this.taken = new long[2 * firstSlot];
    this.most = new long[2 * firstSlot];
  }

  /**
   * Takes room from one slot to another, both included; false, and nothing taken, if there is too
   * little in one of them.
   *
   * @param to never before that of an earlier call
   */
  boolean take(int from, int to, long bytes) {
    if (bytes > capacity - mostFrom(from)) {
      return false;
    }
    addFrom(from, bytes);
    addFrom(to + 1, -bytes);
    return true;
  }

  /** The most in this slot or a later one. */
  private long mostFrom(int slot) {
    int node = firstSlot + slot;
    long found = most[node];
    while (node > 1) {
      if (isLeft(node)) {
        found = Math.max(found, most[node + 1]);
      }
      node /= 2;
      found += taken[node];
    }
    return found;
  }

  /** Takes so much in this slot and all later ones. */
  private void addFrom(int slot, long bytes) {
    int node = firstSlot + slot;
    add(node, bytes);
    while (node > 1) {
      if (isLeft(node)) {
        add(node + 1, bytes);
      }
      node /= 2;
      most[node] = taken[node] + Math.max(most[2 * node], most[2 * node + 1]);
    }
  }

  private void add(int node, long bytes) {
    taken[node] += bytes;
    most[node] += bytes;
  }

  private static boolean isLeft(int node) {
    return node % 2 == 0;
  }
}
