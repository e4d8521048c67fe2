package org.gristway.read;

import java.lang.foreign.MemorySegment;
import org.gristway.Failure;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.chunk.LittleEndian;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * What is done about a sample that has not arrived as it was packed: it is read once more, on its
 * own and through the page cache, and if it fails its checksum again it is damaged. What cannot be
 * read at all is no damage: that ends the run.
 */
final class SecondLook {

  private final Snapshot snapshot;
  private final ChunkSource source;
  private final Patience patience;
  private final DamageLimit limit;

  SecondLook(Snapshot snapshot, ChunkSource source, Patience patience, DamageLimit limit) {
    this.snapshot = snapshot;
    this.source = source;
    this.patience = patience;
    this.limit = limit;
  }

  /**
   * Reads a sample again; true if it has arrived now.
   *
   * @param unread the failure of the first read, or null if it gave bytes; after a failure the
   *     storage is tried only once more, without waiting
   * @throws Failure if it is damaged and too much is, or if it cannot be read
   */
  boolean arrives(long sample, long epoch, MemorySegment target, @Nullable Failure unread) {
    Extent location = snapshot.location(sample);
    if (unread == null) {
      patience.fill(source, location, target);
    } else {
      try {
        source.fill(location, target);
      } catch (Failure again) {
        throw unread; // which says for how long
      }
    }
    if (passes(sample, location, target)) {
      return true;
    }
    limit.note(sample, epoch);
    return false;
  }

  /** Reads a sample that nobody needs to be told about; true if it has arrived. */
  boolean isGood(long sample, MemorySegment target) {
    Extent location = snapshot.location(sample);
    patience.fill(source, location, target);
    return passes(sample, location, target);
  }

  private boolean passes(long sample, Extent location, MemorySegment target) {
    return LittleEndian.checksum(target.asSlice(0, location.length())) == snapshot.checksum(sample);
  }
}
