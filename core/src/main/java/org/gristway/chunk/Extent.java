package org.gristway.chunk;

/**
 * A contiguous run of whole samples inside a chunk: the unit of reading.
 *
 * @param chunk the chunk's number
 * @param offset of the first byte in the chunk's file
 * @param length in bytes
 */
public record Extent(int chunk, long offset, long length) {}
