package org.gristway.read;

import java.lang.foreign.MemorySegment;

/**
 * The caches of a job's other nodes. Plans say which node keeps a sample and where, so nobody looks
 * for it: it is asked for there, or read from the store.
 */
public interface PeerCaches {

  /** For a job of one node. */
  PeerCaches NONE = (_, _, _, _) -> false;

  /**
   * Copies a sample that another node keeps, as {@link Loader#copyKept} there answers.
   *
   * <p>Several reading threads call at once, a little ahead of need, and wait for the answer; so
   * does whoever closes the loader meanwhile. What arrives is checked by the caller.
   *
   * @param node of the loader's world, which may have a node for each rank
   * @param tier of that node's cache, as in {@link org.gristway.plan.Caching}
   * @param target of the sample's length; if it was not there, it may hold anything
   * @return whether it was there; not so too if the node is lost or slow: never a failure
   */
  boolean fetch(int node, long sample, int tier, MemorySegment target);
}
