package org.gristway.plan;

/**
 * Who reads an extent, where ranks mix what they read. Whatever it is, each sample comes once an
 * epoch and every rank gets as many.
 */
public enum Homes {
  /** Extents are dealt to ranks anew in every epoch, in exactly equal shares. */
  AFRESH,
  /**
   * Each extent has a home: the rank that reads it in every epoch, by rendezvous hashing of seed
   * and extent over all ranks. A rank that is added or gone moves no extents but its own.
   */
  HASHED,
  /**
   * Each chunk is on the node that {@code gristway place} gives it to, and the home of an extent is
   * one of that node's ranks, by rendezvous hashing over them. The order then depends on how ranks
   * are grouped into nodes.
   */
  PLACED
}
