package org.gristway.plan;

import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.function.IntToLongFunction;

/** Layouts to plan for. */
public final class Layouts {

  private static final long CHUNK_BYTES = 64 << 20;
  private static final long DATA_OFFSET = 4096;

  private Layouts() {}

  /** What the samples of a random layout are like. */
  private enum Shape {
    EMPTY,
    ONE,
    GIANT,
    TINY,
    ZEROS,
    ONE_A_CHUNK,
    LOG_NORMAL,
    PARETO,
    FIXED
  }

  /** Samples of one size. */
  public static TestLayout fixed(int samples, long bytes) {
    return formula("fixed", samples, i -> bytes);
  }

  /** Samples of a size by their number, in chunks as large as the packer's. */
  public static TestLayout formula(String name, int samples, IntToLongFunction bytes) {
    long[] lengths = new long[samples];
    Arrays.setAll(lengths, bytes);
    int[] firsts = new int[samples];
    int chunks = 0;
    long left = 0;
    for (int i = 0; i < samples; i++) {
      if (lengths[i] > left || i == 0) {
        firsts[chunks++] = i;
        left = CHUNK_BYTES;
      }
      left -= lengths[i];
    }
    long[] dataOffsets = new long[chunks];
    Arrays.fill(dataOffsets, DATA_OFFSET);
    return new TestLayout(name, lengths, Arrays.copyOf(firsts, chunks), dataOffsets);
  }

  /** Anything that a dataset may look like, with at most 1,200 samples. */
  public static TestLayout random(Random random) {
    Shape[] shapes = Shape.values();
    Shape shape = shapes[random.nextInt(shapes.length)];
    int[] mosts = {10, 150, 1200};
    int most = mosts[random.nextInt(mosts.length)];
    int samples =
        switch (shape) {
          case EMPTY -> 0;
          case ONE -> 1;
          default -> 1 + random.nextInt(most);
        };
    double typical = Math.exp(2 + 8 * random.nextDouble()); // 7 bytes to 22 KB
    long[] lengths = new long[samples];
    Arrays.setAll(lengths, i -> length(random, shape, typical));
    if (shape == Shape.GIANT) {
      lengths[random.nextInt(samples)] = 3 << 20;
    }
    int[] firsts = shape == Shape.ONE_A_CHUNK ? eachIn(samples) : firsts(random, samples);
    boolean aligned = random.nextBoolean();
    long[] dataOffsets = new long[firsts.length];
    Arrays.setAll(dataOffsets, i -> aligned ? DATA_OFFSET : random.nextInt(20_000));
    String name =
        shape.name().toLowerCase(Locale.ROOT)
            + " layout of "
            + samples
            + " samples of about "
            + Math.round(typical)
            + " bytes in "
            + firsts.length
            + (aligned ? "" : " unaligned")
            + " chunks";
    return new TestLayout(name, lengths, firsts, dataOffsets);
  }

  private static long length(Random random, Shape shape, double typical) {
    return switch (shape) {
      case TINY -> random.nextInt(4);
      case ZEROS -> random.nextInt(3) > 0 ? 0 : random.nextInt((int) typical);
      case LOG_NORMAL -> (long) (typical * Math.exp(random.nextGaussian()));
      case PARETO -> (long) Math.min(4 << 20, typical / (1 - random.nextDouble()));
      case FIXED -> (long) typical;
      default -> random.nextInt(2 * (int) typical);
    };
  }

  private static int[] eachIn(int chunks) {
    int[] firsts = new int[chunks];
    Arrays.setAll(firsts, i -> i);
    return firsts;
  }

  /** Chunks of random sizes, some of them perhaps empty. */
  private static int[] firsts(Random random, int samples) {
    int[] firsts = new int[1 + random.nextInt(1 + Math.min(10, samples))];
    for (int i = 1; i < firsts.length; i++) {
      firsts[i] = random.nextInt(samples + 1);
    }
    Arrays.sort(firsts);
    return firsts;
  }
}
