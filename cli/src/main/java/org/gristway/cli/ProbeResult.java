package org.gristway.cli;

import java.util.Comparator;
import java.util.List;

/**
 * What a probe has measured.
 *
 * @param isDirect false if the storage refuses reads past the page cache, and those went through it
 * @param reads at random places of a file, past the page cache
 * @param bufferedRate bytes a second through the page cache, which had nothing of the file
 * @param cachedRate the same, with all of the file in the page cache
 * @param smallFiles a second, of 10 KB each
 * @param copyRate bytes a second that one thread copies in memory
 */
public record ProbeResult(
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
  public record Reads(long bytes, int atOnce, double rate) {

    double perSecond() {
      return rate / bytes;
    }

    /** What one of them takes, if they are one at a time. */
    double seconds() {
      return bytes / rate;
    }
  }

  /** Those that were one at a time, the smallest first. */
  List<Reads> alone() {
    return reads.stream()
        .filter(each -> each.atOnce() == 1)
        .sorted(Comparator.comparingLong(Reads::bytes))
        .toList();
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
    return alone().getFirst().seconds();
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
