package org.gristway.handover;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.Failure;
import org.gristway.os.SharedMemory;

/**
 * The memory in which batches reach trainers: a few areas for each rank, all in one memory file
 * that a trainer's process can map and that nothing is left of when the processes are gone.
 *
 * <p>An area is as large as the largest batch it has held, unless that was an exception. It belongs
 * to whoever its {@link AreaQueue} says; only the one who has claimed it may make it larger.
 *
 * <p>Next on the way from file to tensor: {@link Batch}, what a trainer in Java gets, and {@code
 * batch.py} of the Python client, which maps the same memory.
 */
public final class Handover implements AutoCloseable {

  /** One with the trainer, one being built, and two ready between them. */
  public static final int AREAS_AHEAD = 4;

  /** The most areas of a rank: more batches at once than any trainer has use for. */
  public static final int MOST_AREAS = 1024;

  /** An area that one huge batch has left this large, and this many times what is needed. */
  private static final long WASTEFUL = 64 << 20;

  private static final int WASTE = 4;

  private final SharedMemory memory;
  private final MemorySegment resident;
  private final long residentOffset;
  private final List<RankAreas> ranks = new ArrayList<>();
  private final AtomicLong bytes = new AtomicLong();

  /** The areas of one rank. */
  public final class RankAreas {
    private final AreaQueue queue;
    private final MemorySegment[] areas = new MemorySegment[MOST_AREAS];
    private final long[] offsets = new long[MOST_AREAS];
    private final Arena[] mappings = new Arena[MOST_AREAS];

    private RankAreas(int count) {
      this.queue = new AreaQueue(count);
      Arrays.fill(areas, MemorySegment.NULL);
    }

    public AreaQueue queue() {
      return queue;
    }

    /** Lets so many batches exist at once, or more if that is so already. */
    public void grow(int count) {
      queue.grow(Math.min(count, MOST_AREAS));
    }

    /** The memory of an area. */
    public MemorySegment memory(int area) {
      return areas[area];
    }

    /** Where an area is in the memory file. */
    public long offset(int area) {
      return offsets[area];
    }

    /** The memory of a claimed area, with room for at least this many bytes. */
    public MemorySegment reserve(int area, long bytes) {
      long size = areas[area].byteSize();
      if (size < bytes || (size > WASTEFUL && size / WASTE > bytes)) {
        replace(area, bytes + bytes / 8);
      }
      return areas[area];
    }

    /** A stretch behind all others takes an area's place; the old one's memory is given back. */
    private void replace(int area, long size) {
      try {
        long old = areas[area].byteSize();
        if (old > 0) {
          areas[area] = MemorySegment.NULL;
          mappings[area].close();
          memory.discard(offsets[area], old);
        }
        offsets[area] = memory.extend(size);
        mappings[area] = Arena.ofShared();
        areas[area] = memory.map(offsets[area], size, mappings[area]);
        bytes.addAndGet(size - old);
      } catch (IOException failed) {
        throw Failure.io("make shared memory for a batch of " + size + " bytes", failed);
      }
    }

    private void close() {
      for (Arena mapping : mappings) {
        if (mapping != null) {
          mapping.close();
        }
      }
    }
  }

  /** Without a resident stretch. */
  public Handover(int ranks, int areas) {
    this(ranks, areas, 0);
  }

  /**
   * @param areas of each rank; those that are never used cost nothing
   * @param residentBytes for samples that stay: batches point there, in place of having copies
   */
  public Handover(int ranks, int areas, long residentBytes) {
    try {
      this.memory = SharedMemory.create("gristway-handover");
      try {
        this.residentOffset = memory.extend(residentBytes);
        this.resident =
            residentBytes == 0 ? MemorySegment.NULL : memory.map(residentOffset, residentBytes);
      } catch (Throwable refused) {
        memory.close();
        throw refused;
      }
    } catch (IOException failed) {
      throw Failure.io("make shared memory for batches", failed);
    }
    for (int i = 0; i < ranks; i++) {
      this.ranks.add(new RankAreas(areas));
    }
  }

  public RankAreas rank(int index) {
    return ranks.get(index);
  }

  /** How another process opens the memory file. */
  public Path path() {
    return memory.path();
  }

  /** The memory of samples that stay; empty if there are none. */
  public MemorySegment resident() {
    return resident;
  }

  /** Where that is in the memory file. */
  public long residentOffset() {
    return residentOffset;
  }

  /** The memory of all areas now. */
  public long bytes() {
    return bytes.get();
  }

  /** Gives the memory back. Whoever builds or uses batches must have ended. */
  @Override
  public void close() {
    ranks.forEach(RankAreas::close);
    try {
      memory.close();
    } catch (IOException ignored) {
      // A memory file that cannot be closed goes with the process.
    }
  }
}
