package org.gristway.handover;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.gristway.snapshot.Snapshot;

/**
 * The samples of one rank and step. Their bytes stand in shared memory and are the trainer's until
 * {@link #close}; after that the memory is built in again, and every view that was handed out
 * throws when it is used. Any thread may read; closing is for one, and closing twice does nothing.
 *
 * <p>Every byte has passed its checksum. In a place whose sample is damaged, the nearest good
 * sample of the batch stands instead, flagged.
 */
public final class Batch implements AutoCloseable {

  private final Snapshot snapshot;
  private final MemorySegment area;
  private final MemorySegment resident;
  private final long offset;
  private final Arena arena = Arena.ofShared();
  private final Runnable release;
  private boolean closed;

  /**
   * @param area that it stands in
   * @param offset of the area in the handover's memory file
   * @param resident the memory of samples that stay
   */
  public Batch(
      Snapshot snapshot,
      MemorySegment area,
      long offset,
      MemorySegment resident,
      Runnable release) {
    this.snapshot = snapshot;
    this.offset = offset;
    this.area = area.reinterpret(arena, null).asReadOnly();
    this.resident = resident.reinterpret(arena, null).asReadOnly();
    this.release = release;
  }

  public long epoch() {
    return BatchLayout.epoch(area);
  }

  /** Its number in the epoch (or in what is left of it, after a change of world), from 0. */
  public long step() {
    return BatchLayout.step(area);
  }

  public int rank() {
    return BatchLayout.rank(area);
  }

  /** Where its area begins in the handover's memory file, for another process that maps it. */
  public long offset() {
    return offset;
  }

  /** How large its area is. */
  public long areaBytes() {
    return area.byteSize();
  }

  /** How many samples it has, repeats included. */
  public int size() {
    return BatchLayout.places(area);
  }

  /** The id of the sample in a place. */
  public long sample(int place) {
    return BatchLayout.sample(area, checked(place));
  }

  /** The id of the sample that was due in a place: another one than is there if it is damaged. */
  public long planned(int place) {
    return BatchLayout.planned(area, checked(place));
  }

  /** The id of the sample that a plain loader would have given here. */
  public long request(int place) {
    return BatchLayout.request(area, checked(place));
  }

  /** The key of the sample in a place. */
  public String key(int place) {
    return snapshot.key(sample(place));
  }

  /** Its label, or -1. */
  public int label(int place) {
    return BatchLayout.label(area, checked(place));
  }

  /** The bytes of all its parts, one after the other, where they stand: a view, not a copy. */
  public MemorySegment data(int place) {
    boolean stays = (BatchLayout.flags(area, checked(place)) & BatchLayout.RESIDENT) != 0;
    return (stays ? resident : area)
        .asSlice(BatchLayout.offset(area, place), BatchLayout.length(area, place));
  }

  /** A copy of its bytes. */
  public byte[] bytes(int place) {
    return data(place).toArray(ValueLayout.JAVA_BYTE);
  }

  /** How many bytes it has. */
  public long length(int place) {
    return BatchLayout.length(area, checked(place));
  }

  /** Where its parts end, counted from its first byte. */
  public long[] partEnds(int place) {
    return snapshot.partEnds(sample(place));
  }

  /** True if the sample is delivered elsewhere in this epoch, and only fills this place. */
  public boolean isRepeat(int place) {
    return (BatchLayout.flags(area, checked(place)) & BatchLayout.REPEAT) != 0;
  }

  /** True if it fills the place of a sample that is damaged. */
  public boolean isDamaged(int place) {
    return (BatchLayout.flags(area, checked(place)) & BatchLayout.DAMAGED) != 0;
  }

  private int checked(int place) {
    if (place < 0 || place >= size()) {
      throw new IndexOutOfBoundsException(place);
    }
    return place;
  }

  /** Gives the memory back. */
  @Override
  public synchronized void close() {
    if (!closed) {
      arena.close(); // refused while another thread's system call uses a view
      closed = true;
      release.run();
    }
  }
}
