/**
 * Chunks: immutable, checksummed files that hold many samples each. {@link
 * org.gristway.chunk.ChunkFormat} draws the bytes; {@link org.gristway.chunk.ChunkSource} is where
 * they are read from.
 */
@NullMarked
package org.gristway.chunk;

import org.jspecify.annotations.NullMarked;
