package org.gristway.plan;

import org.gristway.Failure;

/**
 * What a user decides about a plan. All of it enters the order.
 *
 * @param policy its name
 * @param batchSize samples a rank gets at a step
 * @param memory bytes for the frames of one rank
 * @param extentBytes the size of a frame, a multiple of 4096
 * @param tail what becomes of samples that do not fill a global batch
 * @param caching for the policies that cache samples
 * @param exchange between ranks, for the policies that read whole extents
 */
public record PlanSettings(
    String policy,
    int batchSize,
    long memory,
    long extentBytes,
    Tail tail,
    Caching caching,
    Exchange exchange) {

  private static final long DEFAULT_EXTENT = 1 << 20;
  private static final long SMALLEST_AUTO_EXTENT = 256 << 10;
  private static final long LARGEST_EXTENT = 1 << 30;

  /** Below this, a draw finds too few extents to choose from, and smaller ones are better. */
  private static final long FRAMES_TO_MIX = 128;

  public PlanSettings {
    if (batchSize < 1) {
      throw Failure.wrongCall("a batch needs at least one sample, not %d", batchSize);
    }
    if (extentBytes < ExtentCuts.PAGE
        || extentBytes > LARGEST_EXTENT
        || extentBytes % ExtentCuts.PAGE != 0) {
      throw Failure.wrongCall(
          "an extent must be a multiple of 4KiB and at most 1GiB, not %d bytes", extentBytes);
    }
  }

  /** Nothing is cached, and nothing exchanged. */
  public PlanSettings(String policy, int batchSize, long memory, long extentBytes, Tail tail) {
    this(policy, batchSize, memory, extentBytes, tail, Caching.NONE, Exchange.NONE);
  }

  /** The same for another policy. */
  public PlanSettings withPolicy(String other) {
    return new PlanSettings(other, batchSize, memory, extentBytes, tail, caching, exchange);
  }

  /** The same with something to cache in. */
  public PlanSettings withCaching(Caching other) {
    return new PlanSettings(policy, batchSize, memory, extentBytes, tail, other, exchange);
  }

  /** The same with ranks that mix what they read. */
  public PlanSettings withExchange(Exchange other) {
    return new PlanSettings(policy, batchSize, memory, extentBytes, tail, caching, other);
  }

  /**
   * The extent size where none is asked for: 1 MiB, which every storage reads at full speed; down
   * to 256 KiB where the memory of a rank would otherwise hold too few extents to mix well.
   */
  public static long autoExtent(long memory) {
    long extent = DEFAULT_EXTENT;
    while (extent > SMALLEST_AUTO_EXTENT && memory / extent < FRAMES_TO_MIX) {
      extent /= 2;
    }
    return extent;
  }

  /** How many frames a rank has. */
  public int frames() {
    return (int) Math.min(Integer.MAX_VALUE >> 8, memory / extentBytes);
  }
}
