package org.gristway.plan;

import java.util.Arrays;
import org.gristway.chunk.Extent;

/** A layout without a dataset: chunks of samples that lie one after the other. */
public final class TestLayout implements SampleLayout {

  private final String name;
  private final int[] firsts; // of each chunk, and the number of samples
  private final long[] offsets;
  private final long[] lengths;

  /**
   * @param name is the id, and says what it is like
   * @param lengths of the samples
   * @param firsts the first sample of each chunk
   * @param dataOffsets where the samples of each chunk begin
   */
  public TestLayout(String name, long[] lengths, int[] firsts, long[] dataOffsets) {
    this.name = name;
    this.lengths = lengths;
    this.firsts = Arrays.copyOf(firsts, firsts.length + 1);
    this.firsts[firsts.length] = lengths.length;
    this.offsets = new long[lengths.length];
    for (int chunk = 0; chunk < firsts.length; chunk++) {
      long offset = dataOffsets[chunk];
      for (int sample = firsts[chunk]; sample < this.firsts[chunk + 1]; sample++) {
        offsets[sample] = offset;
        offset += lengths[sample];
      }
    }
  }

  @Override
  public String id() {
    return name;
  }

  @Override
  public long sampleCount() {
    return lengths.length;
  }

  @Override
  public int chunkCount() {
    return firsts.length - 1;
  }

  @Override
  public long firstSample(int chunk) {
    return firsts[chunk];
  }

  @Override
  public Extent location(long sample) {
    return new Extent(chunkOf(sample), offsets[(int) sample], lengths[(int) sample]);
  }

  @Override
  public long length(long sample) {
    return lengths[(int) sample];
  }

  public long bytes() {
    return Arrays.stream(lengths).sum();
  }

  /** The samples with bytes that lie wholly in an extent. */
  public int[] samplesIn(Extent extent) {
    int first = firsts[extent.chunk()];
    int end = firsts[extent.chunk() + 1];
    while (first < end && (offsets[first] < extent.offset() || lengths[first] == 0)) {
      first++;
    }
    int[] found = new int[end - first];
    int count = 0;
    for (int sample = first; sample < end; sample++) {
      if (offsets[sample] + lengths[sample] > extent.offset() + extent.length()) {
        break;
      }
      if (lengths[sample] > 0) {
        found[count++] = sample;
      }
    }
    return Arrays.copyOf(found, count);
  }

  private int chunkOf(long sample) {
    int low = 0;
    int high = chunkCount() - 1;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (firsts[middle] <= sample) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
}
