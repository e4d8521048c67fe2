package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.gristway.Failure;
import org.gristway.os.PrivateMemory;
import org.jspecify.annotations.Nullable;

/**
 * All samples that one rank pushes to another for one step, in the order of their positions. Its
 * memory grows with what is put in and is used again for the next. It is written by one thread, and
 * then read by another; whoever hands it on makes sure that the one sees what the other did.
 */
public final class Parcel {

  /** In place of a length: the sample is damaged where it was read, and its bytes are not here. */
  public static final long DAMAGED = -1;

  private static final long SMALLEST = 1 << 16;

  private int from;
  private int to;
  private long epoch;
  private long step;
  private int count;
  private int[] positions = new int[16];
  private long[] samples = new long[16];
  private long[] lengths = new long[16];
  private long[] offsets = new long[16];
  private long used;
  private @Nullable PrivateMemory memory;

  Parcel() {}

  /** Empties it for what one rank pushes to another for a step. */
  void begin(int fromRank, int toRank, long ofEpoch, long ofStep) {
    from = fromRank;
    to = toRank;
    epoch = ofEpoch;
    step = ofStep;
    count = 0;
    used = 0;
  }

  public int from() {
    return from;
  }

  public int to() {
    return to;
  }

  public long epoch() {
    return epoch;
  }

  public long step() {
    return step;
  }

  /** How many samples it has. */
  public int count() {
    return count;
  }

  /** The bytes of all samples. */
  public long bytes() {
    return used;
  }

  /** Adds a sample; the memory that its bytes are to be written to. */
  public MemorySegment add(int position, long sample, long length) {
    if (count == positions.length) {
      positions = Arrays.copyOf(positions, 2 * count);
      samples = Arrays.copyOf(samples, 2 * count);
      lengths = Arrays.copyOf(lengths, 2 * count);
      offsets = Arrays.copyOf(offsets, 2 * count);
    }
    positions[count] = position;
    samples[count] = sample;
    lengths[count] = length;
    offsets[count] = used;
    count++;
    reserve(used + Math.max(0, length));
    MemorySegment target = data().asSlice(used, Math.max(0, length));
    used += target.byteSize();
    return target;
  }

  /** Has the sample that was added last be one that is damaged. */
  void spoil() {
    used = offsets[count - 1];
    lengths[count - 1] = DAMAGED;
  }

  /** Makes room for so many bytes of samples in all. */
  public void reserve(long bytes) {
    PrivateMemory old = memory;
    if (old != null && old.segment().byteSize() >= bytes) {
      return;
    }
    long size = Math.max(SMALLEST, Long.highestOneBit(Math.max(1, bytes - 1)) << 1);
    PrivateMemory grown = FramePool.map(size);
    if (old != null) {
      MemorySegment.copy(old.segment(), 0, grown.segment(), 0, used);
      old.close();
    }
    memory = grown;
  }

  /** The bytes of its samples, one after the other. */
  public MemorySegment data() {
    PrivateMemory held = memory;
    return held == null ? MemorySegment.NULL : held.segment();
  }

  public int position(int index) {
    return positions[index];
  }

  public long sample(int index) {
    return samples[index];
  }

  /** The length of a sample, or {@link #DAMAGED}. */
  public long length(int index) {
    return lengths[index];
  }

  /** The bytes of a sample. */
  MemorySegment bytes(int index) {
    return data().asSlice(offsets[index], Math.max(0, lengths[index]));
  }

  /**
   * The index of what is delivered at a position.
   *
   * @throws Failure (environment) if something else was sent than is planned here
   */
  int indexOf(int position, long sample) {
    int index = Arrays.binarySearch(positions, 0, count, position);
    if (index < 0 || samples[index] != sample) {
      throw Failure.environment(
          "rank %d has pushed something else to rank %d than is planned for step %d of epoch %d, place"
              + " %d: do all nodes run the same version of Gristway?",
          from, to, step, epoch, position);
    }
    return index;
  }

  /** Gives its memory back. */
  void close() {
    PrivateMemory held = memory;
    memory = null;
    if (held != null) {
      held.close();
    }
  }
}
