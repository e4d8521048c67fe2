package org.gristway.read;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.gristway.chunk.LittleEndian;
import org.gristway.os.PrivateMemory;
import org.gristway.os.SmallMemory;
import org.gristway.plan.Caching;
import org.gristway.plan.PlanStep;
import org.gristway.snapshot.Snapshot;

/**
 * The samples that the lanes of a node keep from epoch to epoch, in memory and in a file on its own
 * disk. Plans decide what is kept where and until when, and count it by the samples' lengths; here
 * it is only done. What one lane keeps, all may read, and so may other nodes.
 *
 * <p>Losing something is no failure: it is read from the store. So a sample that cannot be kept,
 * because the disk is full or broken, is not kept, and one that turns out damaged is dropped.
 *
 * <p>Any thread may call, at any time: a sample is copied out under a lock that dropping it takes
 * too. Nothing is on the heap, where there is no room for millions of samples: each costs 24 bytes
 * beside its own.
 */
final class SampleCache implements AutoCloseable {

  /** So many threads seldom want the same one. */
  private static final int LOCKS = 1024;

  // What is kept of a sample: who else keeps it, a lane and its tier, where in the file it is; then
  // its bytes, if they are in memory.
  private static final long NEXT = 0;
  private static final long LANE = 8;
  private static final long TIER = 12;
  private static final long PLACE = 16;
  private static final long BYTES = 24;

  private static final long NOBODY = 0;

  private final Snapshot snapshot;
  private final MemoryBudget budget;
  private final Tallies tallies;
  private final CacheFile file;
  private final PrivateMemory table;
  private final MemorySegment firsts; // by sample: the address of what is kept of it, or NOBODY
  private final Object[] locks = new Object[LOCKS];
  private volatile boolean hasKept; // or there is nothing to look through when it ends
  private volatile boolean closed;

  /**
   * @param budget that the samples in memory are taken from
   * @param file for the samples on disk; it stays the caller's
   */
  SampleCache(Snapshot snapshot, MemoryBudget budget, Tallies tallies, CacheFile file) {
    this.snapshot = snapshot;
    this.budget = budget;
    this.tallies = tallies;
    this.file = file;
    Arrays.setAll(locks, _ -> new Object());
    this.table = FramePool.map(Math.max(1, JAVA_LONG.byteSize() * snapshot.sampleCount()));
    this.firsts = table.segment();
  }

  /** Keeps a sample for a lane, which has it nowhere else; true if that could be done. */
  boolean keep(int lane, long sample, int tier, MemorySegment bytes) {
    boolean inMemory = tier == Caching.MEMORY;
    long place = inMemory ? CacheFile.NOWHERE : file.write(bytes);
    if (!inMemory && place == CacheFile.NOWHERE) {
      return false;
    }
    MemorySegment kept;
    try {
      kept = SmallMemory.allocate(BYTES + (inMemory ? bytes.byteSize() : 0));
    } catch (IOException noMemory) {
      if (!inMemory) {
        file.drop(place, bytes.byteSize());
      }
      return false;
    }
    hasKept = true;
    kept.set(JAVA_INT, LANE, lane);
    kept.set(JAVA_INT, TIER, tier);
    kept.set(JAVA_LONG, PLACE, place);
    if (inMemory) {
      MemorySegment.copy(bytes, 0, kept, BYTES, bytes.byteSize());
      budget.take(bytes.byteSize());
      tallies.add(ReadCounter.RESIDENT_BYTES, bytes.byteSize());
    }
    synchronized (lock(sample)) {
      kept.set(JAVA_LONG, NEXT, first(sample));
      firsts.setAtIndex(JAVA_LONG, sample, kept.address());
    }
    tallies.add(ReadCounter.KEPT, 1);
    return true;
  }

  /**
   * Copies a sample that some lane keeps in a tier, if it is there and passes its checksum.
   *
   * @param target of the sample's length; if it was not there, it may hold anything
   */
  boolean copy(long sample, int tier, MemorySegment target) {
    synchronized (lock(sample)) {
      if (closed) {
        return false; // and with it perhaps the snapshot
      }
      if (target.byteSize() != snapshot.length(sample)) {
        throw new IllegalArgumentException(target + " is not for sample " + sample);
      }
      for (long at = first(sample); at != NOBODY; at = next(at)) {
        if (header(at).get(JAVA_INT, TIER) == tier) {
          if (arrives(at, sample, tier, target)) {
            return true;
          }
          unlink(sample, at);
          free(sample, at);
          return copy(sample, tier, target); // perhaps another lane has a better one
        }
      }
    }
    return false;
  }

  private boolean arrives(long at, long sample, int tier, MemorySegment target) {
    if (tier == Caching.MEMORY) {
      MemorySegment kept = SmallMemory.at(at, BYTES + target.byteSize());
      MemorySegment.copy(kept, BYTES, target, 0, target.byteSize());
    } else if (!file.read(header(at).get(JAVA_LONG, PLACE), target)) {
      return false;
    }
    return LittleEndian.checksum(target) == snapshot.checksum(sample);
  }

  /** Drops what a lane keeps of a sample in a tier, or of all samples; if that is anything. */
  void drop(int lane, long sample, int tier) {
    if (sample != PlanStep.Drop.ALL) {
      dropOne(lane, sample, tier);
      return;
    }
    for (long each = 0; each < snapshot.sampleCount(); each++) {
      if (firsts.getAtIndex(JAVA_LONG, each) != NOBODY) {
        dropOne(lane, each, tier);
      }
    }
  }

  private void dropOne(int lane, long sample, int tier) {
    synchronized (lock(sample)) {
      for (long at = first(sample); at != NOBODY; at = next(at)) {
        MemorySegment header = header(at);
        if (header.get(JAVA_INT, LANE) == lane && header.get(JAVA_INT, TIER) == tier) {
          unlink(sample, at);
          free(sample, at);
          return;
        }
      }
    }
  }

  private void unlink(long sample, long gone) {
    long after = next(gone);
    if (first(sample) == gone) {
      firsts.setAtIndex(JAVA_LONG, sample, after);
      return;
    }
    long at = first(sample);
    while (next(at) != gone) {
      at = next(at);
    }
    header(at).set(JAVA_LONG, NEXT, after);
  }

  private void free(long sample, long at) {
    long length = snapshot.length(sample);
    if (header(at).get(JAVA_INT, TIER) == Caching.MEMORY) {
      budget.give(length);
      tallies.add(ReadCounter.RESIDENT_BYTES, -length);
    } else {
      file.drop(header(at).get(JAVA_LONG, PLACE), length);
    }
    SmallMemory.free(at);
  }

  private Object lock(long sample) {
    return locks[Math.floorMod(sample, LOCKS)];
  }

  /** Under the sample's lock: when all of these have been taken once, nobody looks here again. */
  private long first(long sample) {
    return closed ? NOBODY : firsts.getAtIndex(JAVA_LONG, sample);
  }

  private static long next(long at) {
    return header(at).get(JAVA_LONG, NEXT);
  }

  private static MemorySegment header(long at) {
    return SmallMemory.at(at, BYTES);
  }

  /** Gives everything back. No lane may run; who still copies finds nothing any more. */
  @Override
  public void close() {
    for (long sample = 0; hasKept && sample < snapshot.sampleCount(); sample++) {
      if (firsts.getAtIndex(JAVA_LONG, sample) != NOBODY) {
        synchronized (lock(sample)) {
          for (long at = first(sample); at != NOBODY; at = first(sample)) {
            unlink(sample, at);
            free(sample, at);
          }
        }
      }
    }
    closed = true;
    for (Object lock : locks) {
      synchronized (lock) {
        continue; // whoever was inside is out
      }
    }
    table.close();
  }
}
