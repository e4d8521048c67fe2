package org.gristway.handover;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.Failure;
import org.gristway.os.SharedMemory;
import org.jspecify.annotations.Nullable;

/**
 * The memory in which batches reach trainers: a few areas for each rank, all in one memory file
 * that a trainer's process can map and that nothing is left of when the processes are gone.
 *
 * <p>An area is as large as the largest batch it has held, unless that was an exception. It belongs
 * to whoever its {@link AreaQueue} says; only the one who has claimed it may make it larger. All
 * areas of a rank together stay within its {@link HandoverRoom}: with little of it, fewer areas
 * have memory, and building waits for the trainer sooner.
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

  /** The areas of one rank. */
  public final class RankAreas implements HandoverRoom.Holder {
    private final AreaQueue queue;
    private final HandoverRoom room;
    private final MemorySegment[] areas = new MemorySegment[MOST_AREAS];
    private final long[] offsets = new long[MOST_AREAS];
    private final @Nullable Arena[] mappings = new Arena[MOST_AREAS];
    // The bytes of the room that each area was granted; reserve gives its memory this size.
    private final long[] granted = new long[MOST_AREAS];
    private final AtomicLong bytes = new AtomicLong();
    private volatile boolean isRetired;
    private boolean isClosed;

    private RankAreas(int count, HandoverRoom room) {
      this.queue = new AreaQueue(count);
      this.room = room;
      Arrays.fill(areas, MemorySegment.NULL);
      room.enter(this);
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

    /** The memory of all areas now. */
    public long bytes() {
      return bytes.get();
    }

    /** Where an area is in the memory file. */
    public long offset(int area) {
      return offsets[area];
    }

    /**
     * An area to build a batch of this many bytes in, when there is one and room for it; {@link
     * AreaQueue#NONE} once the queue has ended, {@link AreaQueue#ALL_TAKEN} where nobody waits for
     * room and there is none. {@link #reserve} gives its memory.
     *
     * @throws Failure (wrong call) if such a batch can never be built
     */
    public int claim(long bytes) throws InterruptedException {
      if (bytes > room.largest()) {
        throw Failure.wrongCall(
            "a batch of %d bytes is too large for the %d bytes that batches of a rank may take on"
                + " their way%s: give the handover at least %d bytes for each rank of the machine, or"
                + " make the batches smaller",
            bytes,
            room.most(),
            room.isWaitedFor() ? ", of which one is with the trainer while the next is built" : "",
            HandoverRoom.pages(bytes) * (room.isWaitedFor() ? 2 : 1));
      }
      int area = claimNow(bytes);
      if (area == AreaQueue.ALL_TAKEN) {
        room.callIn(this);
        area = claimNow(bytes);
      }
      return area;
    }

    private int claimNow(long bytes) throws InterruptedException {
      List<Integer> shed = new ArrayList<>();
      int area = queue.claim(free -> choose(free, bytes, shed), room.isWaitedFor());
      for (int other : shed) {
        clear(other);
        queue.abandon(other);
      }
      return area;
    }

    /**
     * Returns a free area that has room for the batch, or can get it, if need be from other free
     * areas.
     */
    private int choose(Deque<Integer> free, long bytes, List<Integer> shed) {
      for (int area : free) {
        if (suits(area, bytes)) {
          free.remove(area);
          return area;
        }
      }
      int first = free.peek();
      long ample = ample(bytes);
      if (room.change(granted[first], ample)) {
        granted[first] = ample;
        return free.pop();
      }
      long missing = HandoverRoom.pages(bytes) - HandoverRoom.pages(granted[first]) - room.left();
      long others = 0;
      for (int area : free) {
        others += area == first ? 0 : HandoverRoom.pages(granted[area]);
      }
      if (others < missing) {
        return AreaQueue.NONE;
      }
      Iterator<Integer> oldest = free.descendingIterator();
      while (missing > 0 && oldest.hasNext()) {
        int area = oldest.next();
        if (area != first && granted[area] > 0) {
          missing -= HandoverRoom.pages(granted[area]);
          room.change(granted[area], 0);
          granted[area] = 0;
          shed.add(area);
          oldest.remove();
        }
      }
      if (!room.change(granted[first], bytes)) {
        return AreaQueue.NONE; // others, who share the room, were faster
      }
      granted[first] = bytes;
      return free.pop();
    }

    /** A little more than a batch needs, as the next may; but never so much that no two fit. */
    private long ample(long bytes) {
      return Math.max(bytes, Math.min(bytes + bytes / 8, room.largest()));
    }

    private boolean suits(int area, long bytes) {
      long size = granted[area];
      return size >= bytes && !(size > WASTEFUL && size / WASTE > bytes);
    }

    /**
     * The memory of a claimed area, with room for at least this many bytes.
     *
     * @throws Failure if it was claimed for fewer, and there is no room for more
     */
    public MemorySegment reserve(int area, long bytes) {
      if (!suits(area, bytes)) {
        long size = ample(bytes);
        if (!room.change(granted[area], size)) {
          size = bytes;
          if (!room.change(granted[area], size)) {
            throw Failure.environment(
                "a batch has grown to %d bytes, and there is no room for it in the %d bytes of the"
                    + " handover: give it more",
                bytes, room.most());
          }
        }
        granted[area] = size;
      }
      if (areas[area].byteSize() != granted[area]) {
        replace(area, granted[area]);
      }
      return areas[area];
    }

    /** Gives a taken area back; its memory too, if others may need that. */
    public void release(int area) {
      if (isRetired) {
        // A client that has left may still look at it, so its content stays until all is closed.
        room.change(granted[area], 0);
        granted[area] = 0;
      } else if (room.isTight()) {
        giveBack(area);
      }
      queue.release(area);
    }

    /** Gives back the room of all free areas: others find none. */
    @Override
    public synchronized void giveBackIdle() {
      if (isClosed) {
        return;
      }
      for (int area : queue.claimAll(area -> granted[area] > 0)) {
        giveBack(area);
        queue.abandon(area);
      }
    }

    private void retire() {
      isRetired = true;
      queue.drain().forEach(this::giveBack);
    }

    private void giveBack(int area) {
      room.change(granted[area], 0);
      granted[area] = 0;
      clear(area);
    }

    /** A stretch behind all others takes an area's place; the old one's memory is given back. */
    private void replace(int area, long size) {
      clear(area);
      Arena mapping = Arena.ofShared();
      try {
        offsets[area] = memory.extend(size);
        areas[area] = memory.map(offsets[area], size, mapping);
        mappings[area] = mapping;
        bytes.addAndGet(size);
      } catch (IOException failed) {
        mapping.close();
        throw Failure.io("make shared memory for a batch of " + size + " bytes", failed);
      }
    }

    /** Gives the memory of an area back to the system. */
    private void clear(int area) {
      Arena mapping = mappings[area];
      long old = areas[area].byteSize();
      if (mapping == null) {
        return;
      }
      mappings[area] = null; // whatever happens, it is not closed twice
      areas[area] = MemorySegment.NULL;
      bytes.addAndGet(-old);
      mapping.close();
      try {
        memory.discard(offsets[area], old);
      } catch (IOException failed) {
        throw Failure.io("give back the memory of a batch of " + old + " bytes", failed);
      }
    }

    private synchronized void close() {
      isClosed = true;
      room.leave(this);
      for (int area = 0; area < MOST_AREAS; area++) {
        room.change(granted[area], 0);
        granted[area] = 0;
        Arena mapping = mappings[area];
        if (mapping != null) {
          mappings[area] = null; // it may be retired once more, as closing twice is allowed
          mapping.close();
        }
      }
    }
  }

  /** Without a resident stretch or a bound. */
  public Handover(int ranks, int areas) {
    this(areas, 0, Collections.nCopies(ranks, HandoverRoom.ofRank(Long.MAX_VALUE)));
  }

  /**
   * @param areas of each rank; those that are never used cost nothing
   * @param residentBytes for samples that stay: batches point there, in place of having copies
   * @param rooms of each rank
   */
  public Handover(int areas, long residentBytes, List<HandoverRoom> rooms) {
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
    for (HandoverRoom room : rooms) {
      this.ranks.add(new RankAreas(areas, room));
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
    return ranks.stream().mapToLong(RankAreas::bytes).sum();
  }

  /** Gives the memory back that no batch of a trainer is in. Nobody may build any more. */
  public void retire() {
    ranks.forEach(RankAreas::retire);
  }

  /** Gives the memory back. Whoever builds or uses batches must have ended. */
  @Override
  public void close() {
    try {
      ranks.forEach(RankAreas::close);
    } finally {
      try {
        memory.close();
      } catch (IOException ignored) {
        // A memory file that cannot be closed goes with the process.
      }
    }
  }
}
