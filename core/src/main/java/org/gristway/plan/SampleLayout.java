package org.gristway.plan;

import org.gristway.chunk.Extent;
import org.gristway.snapshot.Snapshot;

/**
 * Where the samples of a dataset lie: all that a plan wants to know of it. Samples are numbered in
 * the order of their bytes, without gaps inside a chunk. Any thread may ask.
 */
public interface SampleLayout {

  /** Says which version of which dataset this is; equal for equal layouts only. */
  String id();

  long sampleCount();

  int chunkCount();

  /** The first sample in a chunk; for the chunk after the last, the number of samples. */
  long firstSample(int chunk);

  /** A sample's bytes. */
  Extent location(long sample);

  /** How many bytes a sample has. */
  long length(long sample);

  /** How many bytes the samples of a chunk have. */
  default long chunkBytes(int chunk) {
    long first = firstSample(chunk);
    long behind = firstSample(chunk + 1);
    if (first == behind) {
      return 0;
    }
    Extent last = location(behind - 1);
    return last.offset() + last.length() - location(first).offset();
  }

  /** How many bytes all samples have; each is looked at. */
  default long bytes() {
    long sum = 0;
    for (long sample = 0; sample < sampleCount(); sample++) {
      sum += length(sample);
    }
    return sum;
  }

  /** The layout of a real dataset. It lives as long as the snapshot. */
  static SampleLayout of(Snapshot snapshot) {
    return new SampleLayout() {
      @Override
      public String id() {
        return snapshot.id() + "/" + snapshot.version();
      }

      @Override
      public long sampleCount() {
        return snapshot.sampleCount();
      }

      @Override
      public int chunkCount() {
        return snapshot.chunkCount();
      }

      @Override
      public long firstSample(int chunk) {
        return snapshot.firstSample(chunk);
      }

      @Override
      public Extent location(long sample) {
        return snapshot.location(sample);
      }

      @Override
      public long length(long sample) {
        return snapshot.length(sample);
      }
    };
  }
}
