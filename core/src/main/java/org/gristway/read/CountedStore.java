package org.gristway.read;

import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;

/** A store, each read of which is counted. */
final class CountedStore implements Storage {

  private final ChunkSource store;
  private final Tallies tallies;

  CountedStore(ChunkSource store, Tallies tallies) {
    this.store = store;
    this.tallies = tallies;
  }

  @Override
  public ChunkSource reading(long epoch, boolean again) {
    return (extent, memory) -> {
      tallies.countRead(epoch, extent.length(), again);
      store.fill(extent, memory);
    };
  }

  /** There is nothing else to read from: a second look tells what it means. */
  @Override
  public void distrust(Extent pages) {}
}
