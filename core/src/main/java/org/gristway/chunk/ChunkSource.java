package org.gristway.chunk;

import java.lang.foreign.MemorySegment;

/** Where extents are read from: a store, or a cache or a peer in front of one. */
public interface ChunkSource {

  /**
   * Fills the first {@code extent.length()} bytes of {@code memory} with the extent. The memory
   * stays the caller's. Any thread may call, several at once.
   *
   * <p>What arrives is what the source holds: the caller checks every sample against its checksum
   * before anyone sees it.
   *
   * @throws org.gristway.Failure if the chunk is missing or too short (damaged), or cannot be
   *     reached (environment); the memory then holds anything
   */
  void fill(Extent extent, MemorySegment memory);
}
