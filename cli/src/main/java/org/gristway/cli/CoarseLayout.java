package org.gristway.cli;

import java.util.Arrays;
import org.gristway.chunk.Extent;
import org.gristway.plan.SampleLayout;

/**
 * A dataset with neighbouring samples of a chunk taken for one, a fixed number of them each, and
 * fewer at the end of a chunk: extents and their reads stay what they are, and there is less to go
 * through. Immutable, for any thread.
 */
final class CoarseLayout implements SampleLayout {

  private final SampleLayout fine;
  private final int together;
  private final long[] firsts; // by chunk; and behind the last the number of samples

  CoarseLayout(SampleLayout fine, int together) {
    this.fine = fine;
    this.together = together;
    this.firsts = new long[fine.chunkCount() + 1];
    for (int chunk = 0; chunk < fine.chunkCount(); chunk++) {
      long held = fine.firstSample(chunk + 1) - fine.firstSample(chunk);
      firsts[chunk + 1] = firsts[chunk] + Math.ceilDiv(held, together);
    }
  }

  @Override
  public String id() {
    return fine.id() + " by " + together;
  }

  @Override
  public long sampleCount() {
    return firsts[fine.chunkCount()];
  }

  @Override
  public int chunkCount() {
    return fine.chunkCount();
  }

  @Override
  public long firstSample(int chunk) {
    return firsts[chunk];
  }

  @Override
  public Extent location(long sample) {
    int found = Arrays.binarySearch(firsts, sample + 1);
    int chunk = (found < 0 ? -found - 1 : found) - 1;
    long first = fine.firstSample(chunk) + (sample - firsts[chunk]) * together;
    long last = Math.min(first + together, fine.firstSample(chunk + 1)) - 1;
    Extent start = fine.location(first);
    Extent end = fine.location(last);
    return new Extent(chunk, start.offset(), end.offset() + end.length() - start.offset());
  }

  @Override
  public long length(long sample) {
    return location(sample).length();
  }
}
