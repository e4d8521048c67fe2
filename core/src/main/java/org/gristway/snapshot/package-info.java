/**
 * Snapshots: the immutable metadata of one dataset version in one file that is used where it lies,
 * memory-mapped. {@link org.gristway.snapshot.SnapshotFormat} draws the bytes.
 */
@NullMarked
package org.gristway.snapshot;

import org.jspecify.annotations.NullMarked;
