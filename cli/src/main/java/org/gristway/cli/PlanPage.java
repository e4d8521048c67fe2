package org.gristway.cli;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import org.gristway.chart.Chart;
import org.gristway.chart.ChartAxis;
import org.gristway.chart.ChartColor;
import org.gristway.chart.ReportPage;
import org.gristway.plan.LabelMix;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;

/**
 * What {@code plan --html} writes: what the table has, and pictures of each policy's order and
 * memory, beside those of what the orders lie between.
 */
final class PlanPage {

  private static final int WIDTH = 320;
  private static final int HEIGHT = 270;

  /** Fewer mates than this are as good as none: equal lengths of an axis are equal ratios. */
  private static final double FEWEST_MATES = 0.1;

  private static final String[] UNITS = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};

  private final DatasetOutlook outlook;
  private final PlanTable table;

  PlanPage(DatasetOutlook outlook) {
    this.outlook = outlook;
    this.table = new PlanTable(outlook);
  }

  /** An order that is shown, by its name. */
  private record Shown(String name, ChartColor color, OrderMeasures order) {}

  /** All that can be shown: the floor, the policies that can plan, the ceiling. */
  private List<Shown> shown() {
    List<Shown> shown = new ArrayList<>();
    shown.add(new Shown("floor: as packed", ChartColor.GREY, outlook.bounds().floor()));
    for (PolicyOutlook policy : outlook.policies()) {
      if (policy.epoch() != null) {
        shown.add(new Shown(policy.policy().name(), ChartColor.BLUE, policy.epoch().order()));
      }
    }
    shown.add(new Shown("ceiling: full shuffle", ChartColor.ORANGE, outlook.bounds().ceiling()));
    return shown;
  }

  String html() {
    ReportPage page = new ReportPage("Plan of " + Text.oneLine(outlook.dataset()));
    page.text(table.dataset() + ".").text(table.world() + ".");
    addCosts(page);
    addQuality(page);
    addOrders(page);
    addMates(page);
    addMemory(page);
    addWhatWasPlanned(page);
    return page.html();
  }

  private void addCosts(ReportPage page) {
    List<List<String>> rows = new ArrayList<>();
    List<String> refusals = new ArrayList<>();
    for (PolicyOutlook policy : outlook.policies()) {
      if (policy.epoch() == null) {
        refusals.add(policy.policy().name() + " cannot plan this: " + policy.refusal());
      } else {
        List<String> row = new ArrayList<>(List.of(policy.policy().name()));
        row.addAll(PlanTable.costs(policy.epoch(), outlook.datasetBytes()));
        rows.add(row);
      }
    }
    List<String> head = new ArrayList<>(List.of("policy"));
    head.addAll(PlanTable.COST_HEADINGS);
    page.heading("What an epoch takes").table(head, rows);
    if (!refusals.isEmpty()) {
      page.list(refusals);
    }
    page.text(
        "Memory is the most that is in use at once on all nodes, for frames and for samples that"
            + " are kept. Read is what comes from storage in the epoch, and how much that is of the"
            + " dataset. A redirected place gets another sample than a plain loader would give.");
  }

  private void addQuality(ReportPage page) {
    List<String> head = new ArrayList<>(List.of(""));
    head.addAll(PlanTable.QUALITY_HEADINGS);
    head.add("correlation");
    if (outlook.hasLabels()) {
      head.addAll(List.of("label entropy", "label variance"));
    }
    List<List<String>> rows = new ArrayList<>();
    for (Shown each : shown()) {
      List<String> row = new ArrayList<>(List.of(each.name()));
      row.addAll(PlanTable.quality(each.order().quality()));
      row.add(PlanTable.decimal(each.order().rankCorrelation()));
      LabelMix.Report labels = each.order().labels();
      if (labels != null) {
        row.add(PlanTable.decimal(labels.entropy()));
        row.add(PlanTable.decimal(labels.variance()));
      }
      rows.add(row);
    }
    List<String> measures =
        new ArrayList<>(
            List.of(
                "mates: how often two samples of a global batch come from the same extent, relative"
                    + " to chance; in rank: the same within the batch of a rank; worst: the batch"
                    + " with the most, relative to the mean",
                "extents: how many different ones a global batch draws from",
                "spread: how far apart in the epoch the samples of an extent come, relative to a"
                    + " full shuffle",
                "correlation: how alike the order of the next epoch is (rank correlation); 0 if one"
                    + " tells nothing of the other, 1 if they are the same"));
    if (outlook.hasLabels()) {
      measures.add(
          "label entropy: of the labels in a global batch, in bits; the more, the more even is"
              + " their mix");
      measures.add(
          "label variance: how far the labels in a global batch are from those of the dataset,"
              + " squared, relative to drawing without repetition");
    }
    page.heading("How well it is shuffled")
        .text(
            "All orders lie between that of the samples as they are packed, which is no shuffle at"
                + " all, and a full shuffle of the dataset in every epoch, which has 1 for mates,"
                + " spread"
                + (outlook.hasLabels() ? " and label variance" : "")
                + ", but for what chance adds.")
        .table(head, rows)
        .list(measures);
  }

  private void addOrders(ReportPage page) {
    page.heading("Which sample comes when")
        .text("Each dot is a sample: where it lies in storage, and where in the epoch it comes.")
        .three(figures(PlanPage::places))
        .text(
            "An extent is a run of neighbours in storage, which most policies read at once. Each"
                + " row below is one extent, each dot one of its samples.")
        .three(figures(PlanPage::extents));
  }

  private ReportPage.Figure[] figures(Function<Shown, ReportPage.Figure> draw) {
    return shown().stream().map(draw).toArray(ReportPage.Figure[]::new);
  }

  private static ChartAxis epochAxis() {
    return new ChartAxis("position in the epoch, %", 0, 100);
  }

  private static ReportPage.Figure places(Shown each) {
    Points points = each.order().places();
    Chart chart =
        new Chart(
            WIDTH,
            WIDTH,
            each.name() + ": position in storage against position in the epoch",
            epochAxis(),
            new ChartAxis("Position in storage, %", 0, 100));
    return new ReportPage.Figure(
        chart.dots(each.color(), points.xs(), points.ys()).svg(), each.name());
  }

  private static ReportPage.Figure extents(Shown each) {
    Points points = each.order().extents();
    Chart chart =
        new Chart(
            WIDTH,
            HEIGHT,
            each.name() + ": when the samples of an extent come, a row for each extent",
            epochAxis(),
            new ChartAxis("Extents, a row each", 0, Math.max(1, each.order().rows())));
    return new ReportPage.Figure(
        chart.withoutNumbersOfY().dots(each.color(), points.xs(), points.ys()).svg(), each.name());
  }

  private void addMates(ReportPage page) {
    double most =
        shown().stream()
            .flatMapToDouble(each -> Arrays.stream(each.order().mates().ys()))
            .max()
            .orElse(1);
    ChartAxis ratio =
        ChartAxis.ofPowers("Mates, relative to chance", 10, FEWEST_MATES, Math.max(10, most));
    double floor = outlook.bounds().floor().quality().mateRatio();
    page.heading("Mates over the epoch")
        .text(
            "Pairs of samples in a global batch that come from the same extent. An order that mixes"
                + " well stays near chance, also at its end, where memory empties.")
        .three(figures(each -> mates(each, ratio, floor)));
  }

  private static ReportPage.Figure mates(Shown each, ChartAxis ratio, double floor) {
    Points points = each.order().mates();
    Chart chart =
        new Chart(
            WIDTH,
            HEIGHT,
            each.name() + ": mates in global batches over the epoch, relative to chance",
            epochAxis(),
            ratio);
    return new ReportPage.Figure(
        chart
            .level("chance", ChartColor.GREY, 1)
            .level("floor", ChartColor.PURPLE, floor)
            .line("mates", each.color(), "", points.xs(), points.ys())
            .svg(),
        each.name());
  }

  private void addMemory(ReportPage page) {
    double budget = (double) outlook.memoryBytes() * outlook.inputs().world().nodes();
    List<ReportPage.Figure> figures = new ArrayList<>();
    for (PolicyOutlook policy : outlook.policies()) {
      if (policy.epoch() != null) {
        figures.add(memory(policy.policy().name(), policy.epoch(), budget));
      }
    }
    page.heading("Memory over the epoch")
        .text(
            "What all nodes together have in use while the batches of a step are made: frames, and"
                + " samples that are kept. The batches on their way to trainers come on top.")
        .three(figures.toArray(ReportPage.Figure[]::new));
  }

  private static ReportPage.Figure memory(String policy, PlannedEpoch epoch, double budget) {
    double most = Math.max(budget, epoch.peakResidentBytes());
    int unit = (int) Math.clamp(Math.floor(Math.log(most) / Math.log(1024)), 0, UNITS.length - 1);
    double size = Math.pow(1024, unit);
    Points points = epoch.memory();
    Chart chart =
        new Chart(
            WIDTH,
            HEIGHT,
            policy + ": memory in use over the epoch, and the budget",
            epochAxis(),
            ChartAxis.upTo("Memory, " + UNITS[unit], most / size));
    double[] used = Arrays.stream(points.ys()).map(bytes -> bytes / size).toArray();
    return new ReportPage.Figure(
        chart
            .level("budget", ChartColor.GREY, budget / size)
            .line("in use", ChartColor.BLUE, "", points.xs(), used)
            .svg(),
        String.format(
            Locale.ROOT, "%s: %s at most", policy, Text.bytes(epoch.peakResidentBytes())));
  }

  private void addWhatWasPlanned(ReportPage page) {
    PlanInputs inputs = outlook.inputs();
    PlanSettings settings = inputs.settings();
    page.heading("What was planned")
        .wordTable(
            List.of(),
            List.of(
                List.of("dataset", Text.oneLine(outlook.dataset())),
                List.of("seed", Long.toString(inputs.seed())),
                List.of("epoch", Long.toString(outlook.epoch())),
                List.of("ranks", Text.number(inputs.world().ranks())),
                List.of("nodes", Text.number(inputs.world().nodes())),
                List.of("memory of a node", Text.bytes(outlook.memoryBytes())),
                List.of("extent", Text.bytes(settings.extentBytes())),
                List.of("batch of a rank", Text.count(settings.batchSize(), "sample")),
                List.of("tail", tail()),
                List.of("version", Version.text())))
        .text("To plan it again:")
        .commands(List.of(command()));
  }

  private String tail() {
    return outlook.inputs().settings().tail().name().toLowerCase(Locale.ROOT);
  }

  private String command() {
    PlanInputs inputs = outlook.inputs();
    PlanSettings settings = inputs.settings();
    return String.format(
        Locale.ROOT,
        "./gristway plan %s --policy %s --memory %d --extent %d --batch-size %d --ranks %d"
            + " --nodes %d --tail %s --seed %d --epoch %d --html plan.html",
        Text.shellQuote(outlook.dataset()),
        settings.policy(),
        outlook.memoryBytes(),
        settings.extentBytes(),
        settings.batchSize(),
        inputs.world().ranks(),
        inputs.world().nodes(),
        tail(),
        inputs.seed(),
        outlook.epoch());
  }
}
