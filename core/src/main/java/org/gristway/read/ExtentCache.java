package org.gristway.read;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.os.SmallMemory;
import org.jspecify.annotations.Nullable;

/**
 * A storage with a cache in front of it: the extents that were read are kept, in memory while there
 * is room and then on the own disk, and are not read from the store again.
 *
 * <p>What comes first is kept, and nothing makes room for anything else. Each extent is wanted once
 * an epoch, in another order each time: no extent is worth more than another, and to drop the one
 * that was used longest ago would be to drop the one that is wanted next.
 *
 * <p>What is asked for may be a part of what was kept, or several parts of it: extents are cut
 * where one rank's share ends and the next begins, which is elsewhere in every epoch. What is there
 * is not checked here but on its way to the trainer, like all that is read; what turns out damaged
 * is dropped, and read from the store the next time.
 */
final class ExtentCache implements Storage, AutoCloseable {

  /** Nothing that is kept lies inside another, so those that begin later also end later. */
  private static final class Chunk {
    final TreeMap<Long, Kept> byOffset = new TreeMap<>();
  }

  /** A kept extent, in memory or in the file. */
  private static final class Kept {
    final Extent pages;
    final boolean inMemory;
    final long place; // an address, or an offset of the file
    boolean isGone;

    Kept(Extent pages, boolean inMemory, long place) {
      this.pages = pages;
      this.inMemory = inMemory;
      this.place = place;
    }

    long end() {
      return pages.offset() + pages.length();
    }
  }

  private final Storage store;
  private final MemoryBudget budget;
  private final Tallies tallies;
  private final CacheFile file;
  private final AtomicLong memoryLeft;
  private final AtomicLong diskLeft;
  private final ConcurrentHashMap<Integer, Chunk> chunks = new ConcurrentHashMap<>();

  /**
   * @param store behind it
   * @param cache how much it may keep
   * @param budget that what it keeps in memory is taken from
   * @param file for what it keeps on a disk; it stays the caller's
   */
  ExtentCache(Storage store, Cache cache, MemoryBudget budget, Tallies tallies, CacheFile file) {
    this.store = store;
    this.budget = budget;
    this.tallies = tallies;
    this.file = file;
    this.memoryLeft = new AtomicLong(cache.memory());
    this.diskLeft = new AtomicLong(cache.disk());
  }

  @Override
  public ChunkSource reading(long epoch, boolean again) {
    return (pages, memory) -> {
      if (copies(pages, memory)) {
        tallies.countFetched(epoch, pages.length());
      } else {
        store.reading(epoch, again).fill(pages, memory);
        keep(pages, memory.asSlice(0, pages.length()));
      }
    };
  }

  /** Copies pages out of all that is kept of them; false if something is missing. */
  private boolean copies(Extent pages, MemorySegment memory) {
    Chunk chunk = chunk(pages);
    long end = pages.offset() + pages.length();
    for (long at = pages.offset(); at < end; ) {
      Kept kept = keptAt(chunk, at);
      if (kept == null) {
        return false;
      }
      long count = Math.min(end, kept.end()) - at;
      if (!copies(kept, at - kept.pages.offset(), memory.asSlice(at - pages.offset(), count))) {
        return false;
      }
      at += count;
    }
    return true;
  }

  private Chunk chunk(Extent pages) {
    return chunks.computeIfAbsent(pages.chunk(), _ -> new Chunk());
  }

  /** What is kept of a chunk at an offset, as far as possible; null if nothing is. */
  private static @Nullable Kept keptAt(Chunk chunk, long at) {
    synchronized (chunk) {
      Map.Entry<Long, Kept> before = chunk.byOffset.floorEntry(at);
      return before == null || before.getValue().end() <= at ? null : before.getValue();
    }
  }

  private boolean copies(Kept kept, long from, MemorySegment target) {
    synchronized (kept) {
      if (kept.isGone) {
        return false;
      }
      if (kept.inMemory) {
        MemorySegment bytes = SmallMemory.at(kept.place, kept.pages.length());
        MemorySegment.copy(bytes, from, target, 0, target.byteSize());
        return true;
      }
      return file.read(kept.place + from, target);
    }
  }

  private void keep(Extent pages, MemorySegment bytes) {
    Kept kept = keepInMemory(pages, bytes);
    if (kept == null) {
      kept = keepOnDisk(pages, bytes);
    }
    if (kept != null) {
      add(kept);
      tallies.add(ReadCounter.KEPT, 1);
    }
  }

  private @Nullable Kept keepInMemory(Extent pages, MemorySegment bytes) {
    if (!takes(memoryLeft, pages.length())) {
      return null;
    }
    try {
      MemorySegment copy = SmallMemory.allocate(pages.length());
      copy.copyFrom(bytes);
      budget.take(pages.length());
      tallies.add(ReadCounter.RESIDENT_BYTES, pages.length());
      return new Kept(pages, true, copy.address());
    } catch (IOException noMemory) {
      memoryLeft.addAndGet(pages.length());
      return null;
    }
  }

  private @Nullable Kept keepOnDisk(Extent pages, MemorySegment bytes) {
    if (!takes(diskLeft, pages.length())) {
      return null;
    }
    long place = file.write(bytes);
    if (place == CacheFile.NOWHERE) {
      diskLeft.addAndGet(pages.length());
      return null;
    }
    return new Kept(pages, false, place);
  }

  private static boolean takes(AtomicLong left, long bytes) {
    if (left.addAndGet(-bytes) >= 0) {
      return true;
    }
    left.addAndGet(bytes);
    return false;
  }

  /** Adds what is kept, in place of all that lies inside it; unless it lies inside another. */
  private void add(Kept kept) {
    Chunk chunk = chunk(kept.pages);
    synchronized (chunk) {
      Kept around = keptAt(chunk, kept.pages.offset());
      if (around != null && around.end() >= kept.end()) {
        free(kept);
        return;
      }
      chunk
          .byOffset
          .subMap(kept.pages.offset(), kept.end())
          .values()
          .removeIf(inside -> inside.end() <= kept.end() && free(inside));
      chunk.byOffset.put(kept.pages.offset(), kept);
    }
  }

  /** Gives the room of what was kept back; true. */
  private boolean free(Kept kept) {
    synchronized (kept) {
      kept.isGone = true;
      if (kept.inMemory) {
        SmallMemory.free(kept.place);
        budget.give(kept.pages.length());
        tallies.add(ReadCounter.RESIDENT_BYTES, -kept.pages.length());
        memoryLeft.addAndGet(kept.pages.length());
      } else {
        file.drop(kept.place, kept.pages.length());
        diskLeft.addAndGet(kept.pages.length());
      }
    }
    return true;
  }

  @Override
  public void distrust(Extent pages) {
    Chunk chunk = chunk(pages);
    synchronized (chunk) {
      long end = pages.offset() + pages.length();
      for (Kept kept = keptAt(chunk, pages.offset()); kept != null && kept.pages.offset() < end; ) {
        chunk.byOffset.remove(kept.pages.offset());
        free(kept);
        Map.Entry<Long, Kept> next = chunk.byOffset.higherEntry(kept.pages.offset());
        kept = next == null ? null : next.getValue();
      }
    }
    store.distrust(pages);
  }

  /** Gives everything back. Nobody may read any more. */
  @Override
  public void close() {
    for (Chunk chunk : chunks.values()) {
      chunk.byOffset.values().forEach(this::free);
      chunk.byOffset.clear();
    }
  }
}
