package org.gristway.simulator;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Locale;
import org.gristway.Failure;
import org.gristway.chunk.Extent;
import org.gristway.os.PrivateMemory;
import org.gristway.plan.Draws;
import org.gristway.plan.SampleLayout;

/**
 * A dataset that does not exist: so many samples, of sizes drawn from a distribution.
 *
 * @param kind of distribution
 * @param mean bytes
 * @param deviation standard deviation of the bytes; 0 for samples of one size
 * @param classes that labels are drawn from
 */
public record Described(long samples, Kind kind, double mean, double deviation, long classes) {

  /** Distributions of sizes. */
  public enum Kind {
    FIXED,
    NORMAL,
    LOGNORMAL
  }

  private static final long CHUNK_BYTES = 64 << 20;
  private static final double SMALLEST_SHARE = 0.01;
  private static final double MOST_MEAN = 1e12;

  public Described {
    if (samples < 1 || samples > Integer.MAX_VALUE) {
      throw Failure.wrongCall("a dataset must have 1 to 2^31 - 1 samples, not %d", samples);
    }
    if (!(mean >= 1 && mean <= MOST_MEAN) || !(deviation >= 0 && deviation <= MOST_MEAN)) {
      throw Failure.wrongCall(
          "sample-bytes: the mean must be from 1 byte to 1 TB, and the deviation from 0 to as much");
    }
    if (kind == Kind.FIXED && deviation != 0) {
      throw Failure.wrongCall("sample-bytes: samples of a fixed size have no deviation");
    }
    if (classes < 1) {
      throw Failure.wrongCall("there must be 1 class or more, not %d", classes);
    }
  }

  /** Reads "fixed BYTES", "normal MEAN DEVIATION" or "lognormal MEAN DEVIATION". */
  static Described parse(long samples, String sizes, long classes) {
    String[] words = sizes.split(" +");
    for (Kind kind : Kind.values()) {
      boolean fixed = kind == Kind.FIXED;
      if (words[0].equalsIgnoreCase(kind.name()) && words.length == (fixed ? 2 : 3)) {
        double mean = Values.number("sample-bytes", words[1]);
        double deviation = fixed ? 0 : Values.number("sample-bytes", words[2]);
        return new Described(samples, kind, mean, deviation, classes);
      }
    }
    throw Failure.wrongCall(
        "sample-bytes: '%s' is not one of: fixed BYTES, normal MEAN DEVIATION, lognormal MEAN"
            + " DEVIATION",
        sizes);
  }

  /** The sizes, as {@link #parse} reads them. */
  String sizes() {
    String ofKind = kind.name().toLowerCase(Locale.ROOT) + " " + Values.number(mean);
    return kind == Kind.FIXED ? ofKind : ofKind + " " + Values.number(deviation);
  }

  /** The dataset of a seed: 8 bytes a sample outside the heap. */
  public SampleLayout layout(long seed) {
    MemorySegment ends = PrivateMemory.table(8 * samples);
    long end = 0;
    for (long sample = 0; sample < samples; sample++) {
      end += length(seed, sample);
      ends.setAtIndex(ValueLayout.JAVA_LONG, sample, end);
    }
    return new Layout(this, seed, Math.max(1, (long) (CHUNK_BYTES / mean)), ends);
  }

  private long length(long seed, long sample) {
    if (deviation == 0) {
      return Math.round(mean);
    }
    double normal = normal(new Draws(Draws.key(seed, sample)));
    double bytes;
    if (kind == Kind.NORMAL) {
      bytes = mean + deviation * normal;
    } else {
      double variance = Math.log(1 + Math.pow(deviation / mean, 2));
      bytes = Math.exp(Math.log(mean) - variance / 2 + Math.sqrt(variance) * normal);
    }
    return Math.max(1, Math.round(Math.max(SMALLEST_SHARE * mean, bytes)));
  }

  /** A number of the standard normal distribution, by Box and Muller's transform. */
  static double normal(Draws draws) {
    double radius = (draws.below(1L << 53) + 1) * 0x1p-53;
    double angle = draws.below(1L << 53) * 0x1p-53;
    return Math.sqrt(-2 * Math.log(radius)) * Math.cos(2 * Math.PI * angle);
  }

  /** Chunks begin where one more sample would be too many bytes; here, at equal numbers of them. */
  private record Layout(Described described, long seed, long perChunk, MemorySegment ends)
      implements SampleLayout {

    @Override
    public String id() {
      return "described " + described + " " + seed;
    }

    @Override
    public long sampleCount() {
      return described.samples;
    }

    @Override
    public int chunkCount() {
      return Math.toIntExact(Math.ceilDiv(described.samples, perChunk));
    }

    @Override
    public long firstSample(int chunk) {
      return Math.min(described.samples, chunk * perChunk);
    }

    private long start(long sample) {
      return sample == 0 ? 0 : ends.getAtIndex(ValueLayout.JAVA_LONG, sample - 1);
    }

    @Override
    public Extent location(long sample) {
      int chunk = (int) (sample / perChunk);
      return new Extent(chunk, start(sample) - start(firstSample(chunk)), length(sample));
    }

    @Override
    public long length(long sample) {
      return ends.getAtIndex(ValueLayout.JAVA_LONG, sample) - start(sample);
    }
  }
}
