package org.gristway.chunk;

/** What a snapshot says of its chunks, so that a store can tell a chunk from an impostor. */
public interface ChunkCatalog {

  int chunkCount();

  /** The size of a chunk's file. */
  long chunkFileBytes(int chunk);

  /** The checksum of its header, which covers its table's checksum and so every sample's. */
  int chunkHeaderChecksum(int chunk);
}
