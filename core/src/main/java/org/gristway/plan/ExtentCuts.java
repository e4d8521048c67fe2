package org.gristway.plan;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.gristway.chunk.Extent;

/**
 * A dataset cut into extents: runs of whole samples inside a chunk that fit a frame, as many in
 * each as do fit. A direct read begins and ends at a page, so what must fit is the run with the
 * rest of its first and last page. A sample larger than a frame is an extent of its own.
 *
 * <p>Immutable, for any thread, and the same for every epoch. It costs 8 bytes an extent outside
 * the heap.
 */
public final class ExtentCuts {

  /** What a direct read is aligned to. */
  public static final int PAGE = 4096;

  /** So that a draw's cost does not depend on how many empty samples lie in a row. */
  private static final long MOST_SAMPLES = 1 << 20;

  private final SampleLayout layout;
  private final long frameBytes;
  private final long sampleFrameBytes;
  private final long count;
  private final MemorySegment firsts; // count + 1 sample numbers

  private ExtentCuts(
      SampleLayout layout,
      long frameBytes,
      long sampleFrameBytes,
      long count,
      MemorySegment firsts) {
    this.layout = layout;
    this.frameBytes = frameBytes;
    this.sampleFrameBytes = sampleFrameBytes;
    this.count = count;
    this.firsts = firsts;
  }

  /** Cuts a dataset; {@code frameBytes} is a multiple of the page. */
  public static ExtentCuts cut(SampleLayout layout, long frameBytes) {
    MemorySegment firsts = table(1024);
    long count = 0;
    long largest = PAGE;
    for (int chunk = 0; chunk < layout.chunkCount(); chunk++) {
      long sample = layout.firstSample(chunk);
      long end = layout.firstSample(chunk + 1);
      if (sample == end) {
        continue;
      }
      long offset = layout.location(sample).offset();
      long first = sample;
      long page = pageOf(offset);
      firsts = append(firsts, count++, first);
      for (; sample < end; sample++) {
        long behind = offset + layout.length(sample);
        boolean fits = pageEnd(behind) - page <= frameBytes && sample - first < MOST_SAMPLES;
        if (!fits && sample > first) {
          first = sample;
          page = pageOf(offset);
          firsts = append(firsts, count++, first);
        }
        long alone = pageEnd(behind) - pageOf(offset);
        if (alone <= frameBytes) {
          largest = Math.max(largest, alone);
        }
        offset = behind;
      }
    }
    firsts = append(firsts, count, layout.sampleCount());
    return new ExtentCuts(layout, frameBytes, largest, count, firsts);
  }

  private static MemorySegment table(long entries) {
    return Arena.ofAuto().allocate(8 * entries, 8);
  }

  private static MemorySegment append(MemorySegment table, long at, long value) {
    MemorySegment room = table;
    if (8 * at == table.byteSize()) {
      room = table(2 * at);
      MemorySegment.copy(table, 0, room, 0, table.byteSize());
    }
    room.setAtIndex(ValueLayout.JAVA_LONG, at, value);
    return room;
  }

  /** The start of the page that a byte lies in. */
  public static long pageOf(long offset) {
    return offset & -PAGE;
  }

  /** The end of the page that the byte before lies in. */
  public static long pageEnd(long offset) {
    return pageOf(offset + PAGE - 1);
  }

  /** How many extents there are. */
  public long count() {
    return count;
  }

  /** The memory that holds any extent, except those of one large sample. */
  public long frameBytes() {
    return frameBytes;
  }

  /** The memory that holds any sample alone, except the large ones. */
  public long sampleFrameBytes() {
    return sampleFrameBytes;
  }

  /** The first sample of an extent; for the one after the last, the number of samples. */
  public long firstSample(long extent) {
    return firsts.getAtIndex(ValueLayout.JAVA_LONG, extent);
  }

  /** The extent that a sample lies in. */
  public long extentOf(long sample) {
    long low = 0;
    long high = count - 1;
    while (low < high) {
      long middle = (low + high + 1) >>> 1;
      if (firstSample(middle) <= sample) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  /** The bytes of an extent. */
  public Extent extent(long extent) {
    return span(firstSample(extent), firstSample(extent + 1) - 1);
  }

  /** The bytes from one sample to another of the same chunk, both included. */
  public Extent span(long first, long last) {
    Extent start = layout.location(first);
    if (first == last) {
      return start;
    }
    Extent end = layout.location(last);
    return new Extent(start.chunk(), start.offset(), end.offset() + end.length() - start.offset());
  }

  /** True if an extent must be read past the frames, straight into its batch. */
  public boolean isLarge(Extent extent) {
    return coveringBytes(extent) > frameBytes;
  }

  /** The bytes of the pages that an extent touches: what reading it reads. */
  public static long coveringBytes(Extent extent) {
    return pageEnd(extent.offset() + extent.length()) - pageOf(extent.offset());
  }
}
