package org.gristway.cli;

import java.util.List;

/**
 * What a probe has measured.
 *
 * @param isDirect false if the storage refuses reads past the page cache, and those went through it
 * @param reads at random places of a file, past the page cache
 * @param bufferedRate bytes a second through the page cache, which had nothing of the file
 * @param cachedRate the same, with all of the file in the page cache
 * @param smallFiles a second, of {@link Probe#SMALL_BYTES} each
 * @param copyRate bytes a second that one thread copies in memory
 */
record ProbeResult(
    long fileBytes,
    boolean isDirect,
    List<Reads> reads,
    double bufferedRate,
    double cachedRate,
    double smallFiles,
    double copyRate) {

  /** Enough: more would not be seen. */
  private static final double ALL_BUT = 0.95;

  /**
   * Reads of one size, some at once.
   *
   * @param rate bytes a second
   */
  record Reads(long bytes, int atOnce, double rate) {

    double perSecond() {
      return rate / bytes;
    }
  }

  double bestRate() {
    return reads.stream().mapToDouble(Reads::rate).max().orElse(0);
  }

  /** The requests a second of the smallest reads, as many at once as were tried. */
  double mostRequests() {
    return reads.stream().mapToDouble(Reads::perSecond).max().orElse(0);
  }

  /** Seconds that one of the smallest reads takes, alone. */
  double latency() {
    return 1 / reads.getFirst().perSecond();
  }

  /** The smallest read that gives all the storage has, with as many at once as were tried most. */
  long saturatingBytes() {
    int most = reads.getLast().atOnce();
    return reads.stream()
        .filter(each -> each.atOnce() == most && each.rate() >= ALL_BUT * bestRate())
        .mapToLong(Reads::bytes)
        .min()
        .orElse(reads.getLast().bytes());
  }
}
