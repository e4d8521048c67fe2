package org.gristway.cli;

import java.util.Arrays;
import org.gristway.chunk.Extent;
import org.gristway.plan.SampleLayout;

/**
 * Some chunks of a dataset, at equal distances, as if it had no more: what takes long for all of it
 * can be tried on these. Immutable, for any thread.
 */
final class Excerpt implements SampleLayout {

  private final SampleLayout whole;
  private final int[] chunks; // of the whole
  private final long[] firsts; // samples, here; and behind the last chunk the number of them

  private Excerpt(SampleLayout whole, int[] chunks, long[] firsts) {
    this.whole = whole;
    this.chunks = chunks;
    this.firsts = firsts;
  }

  /** So many samples or a few more, or all if there are not so many. */
  static SampleLayout of(SampleLayout whole, long samples) {
    if (whole.sampleCount() <= samples) {
      return whole;
    }
    double share = (double) samples / whole.sampleCount();
    int count = (int) Math.ceil(share * whole.chunkCount());
    int[] chunks = new int[count];
    long[] firsts = new long[count + 1];
    for (int i = 0; i < count; i++) {
      chunks[i] = (int) ((long) i * whole.chunkCount() / count);
      long held = whole.firstSample(chunks[i] + 1) - whole.firstSample(chunks[i]);
      firsts[i + 1] = firsts[i] + held;
    }
    return new Excerpt(whole, chunks, firsts);
  }

  @Override
  public String id() {
    return chunks.length + " chunks of " + whole.id();
  }

  @Override
  public long sampleCount() {
    return firsts[chunks.length];
  }

  @Override
  public int chunkCount() {
    return chunks.length;
  }

  @Override
  public long firstSample(int chunk) {
    return firsts[chunk];
  }

  /** The number of the chunk, here, that a sample lies in: the last that begins at or before it. */
  private int chunkOf(long sample) {
    int found = Arrays.binarySearch(firsts, sample + 1);
    return (found < 0 ? -found - 1 : found) - 1;
  }

  private long inWhole(long sample, int chunk) {
    return whole.firstSample(chunks[chunk]) + sample - firsts[chunk];
  }

  @Override
  public Extent location(long sample) {
    int chunk = chunkOf(sample);
    Extent there = whole.location(inWhole(sample, chunk));
    return new Extent(chunk, there.offset(), there.length());
  }

  @Override
  public long length(long sample) {
    return whole.length(inWhole(sample, chunkOf(sample)));
  }
}
