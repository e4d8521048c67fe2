package org.gristway.cli;

import java.io.IOException;
import java.util.List;
import java.util.Locale;
import org.gristway.plan.Quality;
import org.gristway.read.EpochReport;
import org.gristway.read.Loader;

/** What {@code read} tells people: two lines an epoch as it ends, and what it all came to. */
final class ReadSummary {

  private final Console console;
  private final Loader loader;
  private final long memoryBytes;

  ReadSummary(Console console, Loader loader, long memoryBytes) {
    this.console = console;
    this.loader = loader;
    this.memoryBytes = memoryBytes;
  }

  /** Tells of an epoch. Nothing is printed before the first has ended: it may yet fail. */
  void epoch(EpochResult result) throws IOException {
    EpochReport report = result.report();
    if (report.epoch() == 0) {
      console.print(heading());
    }
    double seconds = Math.max(result.seconds(), 1e-9);
    line(
        "epoch " + report.epoch(),
        String.format(
            Locale.ROOT,
            "%s, %s in %s: %,.0f samples/s, %s/s; waited %s",
            Text.count(report.samples(), "sample"),
            Text.bytes(report.bytes()),
            Text.seconds(result.nanos()),
            report.samples() / seconds,
            Text.bytes(report.bytes() / seconds),
            waited(result.stallSeconds(), seconds)));
    StringBuilder more =
        new StringBuilder()
            .append(Text.count(report.storageReads(), "read"))
            .append(" from storage, ")
            .append(Text.bytes(report.storageBytes()));
    append(more, report.fetched(), " fetched from the cache");
    append(more, report.fallBacks(), " missed there");
    more.append("; memory ")
        .append(Text.bytes(report.peakResidentBytes()))
        .append(" at most; ")
        .append(Text.number(report.redirected()))
        .append(" redirected");
    append(more, report.repeated(), " repeated");
    append(more, report.damaged(), " damaged");
    line("", more.toString());
    console.flush();
  }

  private String heading() {
    return String.format(
        "%s: policy %s, memory %s, %s of at most %s",
        Text.oneLine(loader.dataset().path().toString()),
        loader.options().policy(),
        Text.bytes(memoryBytes),
        Text.count(loader.cuts().count(), "extent"),
        Text.bytes(loader.cuts().frameBytes()));
  }

  private static void append(StringBuilder line, long count, String what) {
    if (count > 0) {
      line.append(", ").append(Text.number(count)).append(what);
    }
  }

  /** Tells of the whole run. */
  void end(List<EpochResult> epochs, Quality.Report quality) throws IOException {
    line(
        "shuffle",
        String.format(
            Locale.ROOT,
            "mate ratio %.2f (within a rank %.2f), worst batch %.2f, %,.1f extents a batch,"
                + " spread %.2f",
            quality.mateRatio(),
            quality.rankMateRatio(),
            quality.worstBatch(),
            quality.distinctExtents(),
            quality.spread()));
    double stalled = epochs.stream().mapToDouble(EpochResult::stallSeconds).sum();
    double seconds = epochs.stream().mapToDouble(EpochResult::seconds).sum();
    line(
        "stall",
        String.format(
            Locale.ROOT,
            "trainers waited %s of %.2f s for data",
            waited(stalled, seconds),
            seconds));
  }

  /** Ranks may be in different epochs at the same time, so a share may come out above the whole. */
  private static String waited(double stalled, double seconds) {
    double share = seconds > 0 ? Math.min(1, stalled / seconds) : 0;
    return String.format(Locale.ROOT, "%.2f s (%.0f %%)", stalled, 100 * share);
  }

  private void line(String name, String text) throws IOException {
    console.print(String.format("%-9s %s", name, text));
  }
}
