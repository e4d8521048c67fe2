package org.gristway.plan;

import java.util.Locale;
import org.gristway.Failure;

/**
 * How the ranks of a job mix what they read. All of it enters the plan.
 *
 * @param share of the deliveries whose source is drawn over all ranks, in proportion to the samples
 *     that each has left; the others come from what the rank reads itself
 * @param window how many steps ahead of its delivery a sample is pushed to another rank
 * @param homes who reads an extent; homes that stay need a share of 1, since what is at home with a
 *     rank is more or less than what it delivers
 */
public record Exchange(double share, int window, Homes homes) {

  public static final int DEFAULT_WINDOW = 2;

  private static final int MOST_WINDOW = 64;

  /** Every rank delivers what it reads, which is right where all read the same storage. */
  public static final Exchange NONE = of(0);

  public Exchange {
    if (!(share >= 0 && share <= 1)) {
      throw Failure.wrongCall("the share that is exchanged must be from 0 to 1, not %s", share);
    }
    if (window < 1 || window > MOST_WINDOW) {
      throw Failure.wrongCall(
          "samples can be pushed 1 to %d steps ahead, not %d", MOST_WINDOW, window);
    }
    if (homes != Homes.AFRESH && share < 1) {
      throw Failure.wrongCall(
          "%s homes need an exchange of 1, not %s: a rank has more or less at home than it delivers",
          homes.name().toLowerCase(Locale.ROOT), share);
    }
  }

  /** Extents are dealt afresh. */
  public Exchange(double share, int window) {
    this(share, window, Homes.AFRESH);
  }

  /**
   * The steps for which a rank has room for what others push. A window and one would do for nobody
   * to wait for ever; then ranks would be told at every step, a latency of the network late, that
   * there is room for the next. With a window more that has been told before it is needed.
   */
  public static int room(int window) {
    return 2 * window + 1;
  }

  /** So much of it, pushed as far ahead as usual. */
  public static Exchange of(double share) {
    return new Exchange(share, DEFAULT_WINDOW);
  }

  /** The same with other homes. */
  public Exchange withHomes(Homes other) {
    return new Exchange(share, window, other);
  }
}
