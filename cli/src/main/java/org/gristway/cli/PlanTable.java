package org.gristway.cli;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.gristway.handover.Handover;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.Quality;

/** What {@code plan} tells people: a table with a row for each policy. */
final class PlanTable {

  private static final List<String> HEADINGS =
      List.of(
          "policy",
          "frames",
          "memory",
          "reads",
          "read",
          "of data",
          "redirected",
          "mates",
          "in rank",
          "worst",
          "extents",
          "spread");

  private static final List<String> LEGEND =
      List.of(
          "memory   frames in use at once, on all nodes",
          "read     bytes from storage in an epoch, and relative to the dataset",
          "mates    how often two samples of a global batch share an extent, relative to chance: 1"
              + " is a full shuffle",
          "in rank  the same within the batch of a rank; worst: of the worst batch, relative to the"
              + " mean",
          "extents  different extents in a global batch",
          "spread   how far apart in the epoch the samples of an extent are: 1 is a full shuffle");

  private final Console console;

  PlanTable(Console console) {
    this.console = console;
  }

  void print(
      String dataset,
      PlanInputs inputs,
      long memoryBytes,
      long datasetBytes,
      List<PolicyOutlook> outlooks)
      throws IOException {
    console.print(
        String.format(
            "%s: %s, %s, %s of at most %s",
            Text.oneLine(dataset),
            Text.count(inputs.layout().sampleCount(), "sample"),
            Text.bytes(datasetBytes),
            Text.count(inputs.cuts().count(), "extent"),
            Text.bytes(inputs.settings().extentBytes())));
    console.print(
        String.format(
            "%s on %s with %s of memory each, and about %s for batches; %s with batches of %s",
            Text.count(inputs.world().ranks(), "rank"),
            Text.count(inputs.world().nodes(), "node"),
            Text.bytes(memoryBytes),
            Text.bytes(handoverBytes(inputs, datasetBytes)),
            Text.count(inputs.shares().steps(), "step"),
            Text.number(inputs.settings().batchSize())));
    console.print("");
    List<List<String>> rows = new ArrayList<>();
    rows.add(HEADINGS);
    for (PolicyOutlook outlook : outlooks) {
      PlannedEpoch epoch = outlook.epoch();
      rows.add(
          epoch == null
              ? List.of(outlook.policy().name())
              : row(outlook.policy().name(), epoch, datasetBytes));
    }
    Columns.print(rows, row -> outlooks.get(row - 1).refusal(), console);
    console.print("");
    for (String line : LEGEND) {
      console.print(line);
    }
  }

  /** What the handover of a node comes to with samples of the mean length. */
  private static double handoverBytes(PlanInputs inputs, long datasetBytes) {
    long samples = Math.max(1, inputs.layout().sampleCount());
    long inBatch = Math.min(samples, inputs.settings().batchSize());
    return (double) Handover.AREAS_AHEAD
        * inputs.world().mostRanks()
        * inBatch
        * datasetBytes
        / samples;
  }

  private static List<String> row(String policy, PlannedEpoch epoch, long datasetBytes) {
    Quality.Report quality = epoch.quality();
    return List.of(
        policy,
        Text.number(epoch.frames()),
        Text.bytes(epoch.peakResidentBytes()),
        Text.number(epoch.storageReads()),
        Text.bytes(epoch.storageBytes()),
        decimal(datasetBytes == 0 ? 1 : (double) epoch.storageBytes() / datasetBytes),
        percent(epoch.samples() == 0 ? 0 : (double) epoch.redirected() / epoch.samples()),
        decimal(quality.mateRatio()),
        decimal(quality.rankMateRatio()),
        decimal(quality.worstBatch()),
        String.format(Locale.ROOT, "%,.1f", quality.distinctExtents()),
        decimal(quality.spread()));
  }

  private static String decimal(double value) {
    return String.format(Locale.ROOT, "%.2f", value);
  }

  private static String percent(double share) {
    return String.format(Locale.ROOT, "%.1f %%", 100 * share);
  }
}
