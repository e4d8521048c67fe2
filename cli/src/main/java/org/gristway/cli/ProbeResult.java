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
 * @param checkedRate the same, with a checksum of what is copied, as samples are delivered
 * @param sampleSeconds that the loader takes to deliver a sample, beside reading and copying it
 * @param processors that there are
 */
public record ProbeResult(
    long fileBytes,
    boolean isDirect,
    List<Reads> reads,
    double bufferedRate,
    double cachedRate,
    double smallFiles,
    double copyRate,
    double checkedRate,
    double sampleSeconds,
    int processors) {

  /** Enough: more would not be seen. */
  private static final double ALL_BUT = 0.95;

  /**
   * Reads of one size, some at once.
   *
   * @param rate bytes a second
   * @param processors how many were busy with it, on the average
   */
  public record Reads(long bytes, int atOnce, double rate, double processors) {

    double perSecond() {
      return rate / bytes;
    }

    /** Bytes a second that one processor would be busy with. */
    double perProcessor() {
      return rate / processors;
    }

    /** What one of them takes, if they are one at a time. */
    double seconds() {
      return bytes / rate;
    }
  }

  /** Those that were one at a time, the smallest first. */
  List<Reads> alone() {
    return atOnce(1);
  }

  /** Those with as many at once as were tried most, the smallest first. */
  List<Reads> mostAtOnce() {
    return atOnce(reads.stream().mapToInt(Reads::atOnce).max().orElse(1));
  }

  /** Those with so many at once, the smallest first. */
  List<Reads> atOnce(int number) {
    return reads.stream()
        .filter(each -> each.atOnce() == number)
        .sorted(Comparator.comparingLong(Reads::bytes))
        .toList();
  }

  /** The most bytes a second of any size, as many at once as were tried. */
  double bestRate() {
    return mostAtOnce().stream().mapToDouble(Reads::rate).max().orElse(0);
  }

  /** The requests a second of the smallest reads, as many at once as were tried. */
  double mostRequests() {
    return mostAtOnce().getFirst().perSecond();
  }

  /** Seconds that one of the smallest reads takes, alone. */
  double latency() {
    return alone().getFirst().seconds();
  }

  /** The smallest read that gives all the storage has, with as many at once as were tried most. */
  long saturatingBytes() {
    return mostAtOnce().stream()
        .filter(each -> each.rate() >= ALL_BUT * bestRate())
        .mapToLong(Reads::bytes)
        .min()
        .orElseThrow();
  }
}
