package org.gristway.read;

import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;

/** What lanes read extents from: a store, perhaps with a cache in front of it. For any thread. */
interface Storage {

  /**
   * Where to get an extent from; what that takes is counted.
   *
   * @param epoch that it is counted for
   * @param again true if its bytes were read in this epoch before
   */
  ChunkSource reading(long epoch, boolean again);

  /** Tells that something of what came as these pages is not as it was packed. */
  void distrust(Extent pages);
}
