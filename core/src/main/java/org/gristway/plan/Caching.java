package org.gristway.plan;

import org.gristway.Failure;

/**
 * What a policy that caches samples is told beside its memory. All of it enters the plan.
 *
 * @param diskBytes that a rank may take of its machine's own disk
 * @param epochs of the run: how often a rank will want a sample is counted over them
 * @param rates at which samples come from where they may be, to choose between places
 */
public record Caching(long diskBytes, int epochs, Rates rates) {

  /** The tier of a node's cache that is in memory. */
  public static final int MEMORY = 0;

  /** The tier that is on the node's own disk. */
  public static final int DISK = 1;

  /** True for one of the tiers. */
  public static boolean isTier(int tier) {
    return tier == MEMORY || tier == DISK;
  }

  /** What is decided at once: in a longer run, this many epochs at a time. */
  public static final int MOST_EPOCHS = 32;

  /** No disk, and one epoch. */
  public static final Caching NONE = new Caching(0, 1, Rates.USUAL);

  /**
   * Bytes a second, of one rank. By their order it is decided where a sample comes from, by how
   * much they differ what is worth keeping.
   */
  public record Rates(long store, long network, long memory, long disk) {

    /** Memory before the network, that before a disk, and a shared store behind all. */
    public static final Rates USUAL =
        new Rates(100_000_000, 5_000_000_000L, 10_000_000_000L, 1_000_000_000);

    public Rates {
      if (store < 1 || network < 1 || memory < 1 || disk < 1) {
        throw Failure.wrongCall("a rate must be 1 or more bytes a second");
      }
    }

    /** From a tier of the own node, or of another. */
    public long of(int tier, boolean here) {
      long own = tier == MEMORY ? memory : disk;
      return here ? own : Math.min(network, own);
    }
  }

  public Caching {
    if (diskBytes < 0) {
      throw Failure.wrongCall("a cache cannot have %d bytes of disk", diskBytes);
    }
    if (epochs < 1) {
      throw Failure.wrongCall("a run has at least one epoch, not %d", epochs);
    }
  }
}
