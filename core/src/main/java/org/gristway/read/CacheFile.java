package org.gristway.read;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.gristway.os.NativeFile;
import org.jspecify.annotations.Nullable;

/**
 * What is kept on the own disk: a file that has no name, so that it goes with its process, however
 * that ends, and that nobody else can open. It is written at its end only. What is dropped leaves a
 * hole, whose blocks go back to the disk; neighbouring holes become one, since a block is free only
 * when all of it is.
 *
 * <p>A disk that is full or broken is no failure: nothing is written then, or found, and that is
 * told once. Any thread may call; that a stretch is not read after it was dropped is the caller's
 * to see to.
 */
final class CacheFile implements AutoCloseable {

  /** In place of where something was written. */
  static final long NOWHERE = -1;

  private static final long BLOCK = 4096;

  private final @Nullable Path folder;
  private final Consumer<String> notices;
  private final AtomicBoolean isTold = new AtomicBoolean();
  private final @Nullable NativeFile file;
  private final TreeMap<Long, Long> holes = new TreeMap<>(); // ends, by where they begin
  private long end;
  private long kept; // bytes

  /**
   * @param folder that it is made in; null if nothing is kept on a disk
   * @param notices told once if the disk cannot be used
   */
  CacheFile(@Nullable Path folder, Consumer<String> notices) {
    this.folder = folder;
    this.notices = notices;
    this.file = folder == null ? null : create(folder);
  }

  private @Nullable NativeFile create(Path in) {
    try {
      return NativeFile.createNameless(in);
    } catch (IOException failed) {
      tellOnce(failed);
      return null;
    }
  }

  private void tellOnce(IOException failed) {
    if (!isTold.getAndSet(true)) {
      synchronized (notices) {
        notices.accept(
            String.format(
                "nothing more is kept in %s (%s): it is read from the storage again",
                folder, failed.getMessage()));
      }
    }
  }

  /** Writes some bytes; where they are, or {@link #NOWHERE} if that cannot be done. */
  long write(MemorySegment bytes) {
    if (file == null) {
      return NOWHERE;
    }
    long length = bytes.byteSize();
    long at;
    synchronized (this) {
      at = end;
      end += length;
      kept += length;
    }
    try {
      file.write(bytes, length, at);
      return at;
    } catch (IOException failed) {
      drop(at, length);
      tellOnce(failed);
      return NOWHERE;
    }
  }

  /** Reads what was written; false if that cannot be done. */
  boolean read(long at, MemorySegment target) {
    if (file == null) {
      return false;
    }
    try {
      file.readFully(target, target.byteSize(), at);
      return true;
    } catch (IOException failed) {
      tellOnce(failed);
      return false;
    }
  }

  /** Gives the room of what was written back. */
  synchronized void drop(long at, long length) {
    if (file == null) {
      return;
    }
    kept -= length;
    try {
      if (kept == 0) {
        holes.clear();
        end = 0;
        file.empty();
      } else if (length > 0) {
        discard(file, at, at + length);
      }
    } catch (IOException failed) {
      // The disk is fuller than it need be, and says so when something is written.
    }
  }

  private void discard(NativeFile from, long start, long stop) throws IOException {
    long first = start;
    long last = stop;
    Map.Entry<Long, Long> before = holes.floorEntry(start);
    if (before != null && before.getValue() == start) {
      first = before.getKey();
    }
    Long after = holes.remove(stop);
    if (after != null) {
      last = after;
    }
    holes.put(first, last);
    // Of the holes around it, only the blocks that were shared are not given back yet.
    long firstBlock = Math.max(roundUp(first), start / BLOCK * BLOCK);
    long endBlock = Math.min(last / BLOCK * BLOCK, roundUp(stop));
    if (firstBlock < endBlock) {
      from.discard(firstBlock, endBlock - firstBlock);
    }
  }

  private static long roundUp(long offset) {
    return (offset + BLOCK - 1) / BLOCK * BLOCK;
  }

  @Override
  public void close() {
    if (file != null) {
      try {
        file.close();
      } catch (IOException lost) {
        // What was kept is of no use any more.
      }
    }
  }
}
