package org.gristway.cli;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import org.gristway.handover.Handover;
import org.gristway.plan.LabelMix;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.Quality;
import org.gristway.read.Admission;

/**
 * What {@code plan} tells people: a table with a row for each policy, and below them one for each
 * of what they lie between.
 */
final class PlanTable {

  static final List<String> COST_HEADINGS =
      List.of("frames", "memory", "reads", "read", "of data", "redirected");

  static final List<String> QUALITY_HEADINGS =
      List.of("mates", "in rank", "worst", "extents", "spread");

  private static final String MOVED_HEADING = "moved";
  private static final String CORRELATION_HEADING = "alike";
  private static final String LABELS_HEADING = "labels";

  private static final List<String> LEGEND =
      List.of(
          "floor    the order as packed, without a shuffle; ceiling: a full shuffle",
          "memory   frames and kept samples at once, on all nodes",
          "read     bytes from storage in an epoch, and relative to the dataset",
          "mates    how often two samples of a global batch share an extent, relative to chance: 1"
              + " is a full shuffle",
          "in rank  the same within the batch of a rank; worst: of the worst batch, relative to the"
              + " mean",
          "extents  different extents in a global batch",
          "spread   how far apart in the epoch the samples of an extent are: 1 is a full shuffle",
          "alike    how alike the order of the next epoch is, by rank correlation: 0 is a full"
              + " shuffle, 1 the same");

  private static final String LABELS_LEGEND =
      "labels   variance of the labels in global batches, relative to drawing without repetition: 1 is a"
          + " full shuffle";

  private static final String MOVED_LEGEND =
      "moved    bytes that go from one node to another in an epoch";

  private final DatasetOutlook outlook;

  PlanTable(DatasetOutlook outlook) {
    this.outlook = outlook;
  }

  void print(Console console) throws IOException {
    console.print(Text.oneLine(outlook.dataset()) + ": " + dataset());
    console.print(world());
    console.print("");
    List<List<String>> rows = new ArrayList<>();
    rows.add(headings());
    for (PolicyOutlook policy : outlook.policies()) {
      PlannedEpoch epoch = policy.epoch();
      List<String> row = new ArrayList<>(List.of(policy.policy().name()));
      if (epoch != null) {
        row.addAll(costs(epoch, outlook.datasetBytes()));
        addOrder(epoch.order(), row);
        if (hasNodes()) {
          row.add(Text.bytes(epoch.movedBytes()));
        }
      }
      rows.add(row);
    }
    rows.add(bound("floor", outlook.bounds().floor()));
    rows.add(bound("ceiling", outlook.bounds().ceiling()));
    Columns.print(rows, row -> outlook.policies().get(row - 1).refusal(), console);
    console.print("");
    for (String line : LEGEND) {
      console.print(line);
    }
    if (outlook.hasLabels()) {
      console.print(LABELS_LEGEND);
    }
    if (hasNodes()) {
      console.print(MOVED_LEGEND);
    }
  }

  /** What is planned for. */
  String dataset() {
    PlanInputs inputs = outlook.inputs();
    return String.format(
        "%s, %s, %s of at most %s",
        Text.count(inputs.layout().sampleCount(), "sample"),
        Text.bytes(outlook.datasetBytes()),
        Text.count(inputs.cuts().count(), "extent"),
        Text.bytes(inputs.settings().extentBytes()));
  }

  /** Who it is planned for. */
  String world() {
    PlanInputs inputs = outlook.inputs();
    return String.format(
        "%s on %s with %s of memory each, and about %s for batches, at most %s; %s with"
            + " batches of %s",
        Text.count(inputs.world().ranks(), "rank"),
        Text.count(inputs.world().nodes(), "node"),
        Text.bytes(outlook.memoryBytes()),
        Text.bytes(handoverBytes(inputs, outlook.datasetBytes())),
        Text.bytes(Math.max(Admission.SMALLEST_HANDOVER, outlook.memoryBytes())),
        Text.count(inputs.shares().steps(), "step"),
        Text.number(inputs.settings().batchSize()));
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

  private List<String> headings() {
    List<String> headings = new ArrayList<>(List.of("policy"));
    headings.addAll(COST_HEADINGS);
    headings.addAll(QUALITY_HEADINGS);
    headings.add(CORRELATION_HEADING);
    if (outlook.hasLabels()) {
      headings.add(LABELS_HEADING);
    }
    if (hasNodes()) {
      headings.add(MOVED_HEADING);
    }
    return headings;
  }

  private boolean hasNodes() {
    return outlook.inputs().world().nodes() > 1;
  }

  private static List<String> bound(String name, OrderMeasures order) {
    List<String> row = new ArrayList<>(List.of(name));
    row.addAll(Collections.nCopies(COST_HEADINGS.size(), ""));
    addOrder(order, row);
    return row;
  }

  private static void addOrder(OrderMeasures order, List<String> row) {
    row.addAll(quality(order.quality()));
    row.add(decimal(order.rankCorrelation()));
    LabelMix.Report labels = order.labels();
    if (labels != null) {
      row.add(decimal(labels.variance()));
    }
  }

  /** What it takes, below its headings. */
  static List<String> costs(PlannedEpoch epoch, long datasetBytes) {
    return List.of(
        Text.number(epoch.frames()),
        Text.bytes(epoch.peakResidentBytes()),
        Text.number(epoch.storageReads()),
        Text.bytes(epoch.storageBytes()),
        decimal(datasetBytes == 0 ? 1 : (double) epoch.storageBytes() / datasetBytes),
        percent(epoch.samples() == 0 ? 0 : (double) epoch.redirected() / epoch.samples()));
  }

  /** What it gives, below its headings. */
  static List<String> quality(Quality.Report quality) {
    return List.of(
        decimal(quality.mateRatio()),
        decimal(quality.rankMateRatio()),
        decimal(quality.worstBatch()),
        String.format(Locale.ROOT, "%,.1f", quality.distinctExtents()),
        decimal(quality.spread()));
  }

  /** To two digits behind the point, and without a sign where nothing is left of the number. */
  static String decimal(double value) {
    return String.format(Locale.ROOT, "%.2f", Math.abs(value) < 0.005 ? 0 : value);
  }

  private static String percent(double share) {
    return String.format(Locale.ROOT, "%.1f %%", 100 * share);
  }
}
