package org.gristway.read;

import java.nio.file.Path;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * What a machine may use to keep what was read for later epochs, beside the memory for reading.
 *
 * @param memory bytes for extents, shared by its ranks; policies that keep samples take theirs from
 *     the memory for reading
 * @param disk bytes of its own disk, shared by its ranks
 * @param folder on that disk; a file there has no name, and goes with the process
 */
public record Cache(long memory, long disk, @Nullable Path folder) {

  /** Nothing. */
  public static final Cache NONE = new Cache(0, 0, null);

  public Cache {
    if (memory < 0 || disk < 0) {
      throw Failure.wrongCall(
          "a cache cannot have %d bytes of memory and %d of disk", memory, disk);
    }
    if (disk > 0 && folder == null) {
      throw Failure.wrongCall("to keep what was read on a disk, a folder on it must be named");
    }
  }

  /** True if there is nothing to keep anything in. */
  boolean isNone() {
    return memory == 0 && disk == 0;
  }
}
