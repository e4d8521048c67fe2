package org.gristway.cli;

import java.nio.file.Path;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.gristway.chart.Chart;
import org.gristway.chart.ChartAxis;
import org.gristway.chart.ChartBars;
import org.gristway.chart.ChartColor;
import org.gristway.chart.ChartStrips;
import org.gristway.chart.ReportPage;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.Quality;
import org.gristway.plan.policy.RedirectPolicy;
import org.gristway.plan.policy.SampleOrderPolicy;
import org.gristway.snapshot.Snapshot;

/** What the demo has measured, as a page with pictures. */
final class DemoReport {

  private static final int DOTS = 3_000;
  private static final int ROWS = 24;

  /** Below this, one way is not called faster than another. */
  private static final double CLEARLY = 1.15;

  private final DemoSetting setting;
  private final Snapshot snapshot;
  private final ExtentCuts cuts;
  private final DemoOrders orders;
  private final DemoRun files;
  private final DemoRun sampleOrder;
  private final DemoRun redirect;
  private final long[] redirected;
  private final long[] shuffled;

  /**
   * @param runs of the files one by one, of {@code sample-order}, and of {@code redirect}
   */
  DemoReport(DemoSetting setting, Snapshot snapshot, PlanInputs inputs, List<DemoRun> runs) {
    this.setting = setting;
    this.snapshot = snapshot;
    this.cuts = inputs.cuts();
    this.orders = new DemoOrders(snapshot, inputs);
    this.files = runs.get(0);
    this.sampleOrder = runs.get(1);
    this.redirect = runs.get(2);
    this.redirected = orders.whole(redirect, RedirectPolicy.NAME);
    this.shuffled = orders.whole(sampleOrder, SampleOrderPolicy.NAME);
  }

  private List<DemoRun> runs() {
    return List.of(files, sampleOrder, redirect);
  }

  /** How a run is drawn: told apart by colour, and lines also by their dashes. */
  private record Drawn(DemoRun run, ChartColor color, String dashes) {}

  private List<Drawn> drawn() {
    return List.of(
        new Drawn(files, ChartColor.PURPLE, "3 3"),
        new Drawn(sampleOrder, ChartColor.ORANGE, "8 4"),
        new Drawn(redirect, ChartColor.BLUE, ""));
  }

  /** What it comes to. */
  String conclusion() {
    double gain = redirect.samplesPerSecond() / files.samplesPerSecond();
    if (setting.inMemory()) {
      return String.format(
          Locale.ROOT,
          "Nothing was cold here: the folder is in memory (%s), where packing has little to gain;"
              + " run the demo in a folder on a disk.",
          setting.fileSystem());
    }
    if (gain < CLEARLY) {
      return String.format(
          Locale.ROOT,
          "On this machine the trainer is fed as well by the files one by one (%s samples a second)"
              + " as by the packed dataset (%s): here packing does not pay.",
          rounded(files.samplesPerSecond()),
          rounded(redirect.samplesPerSecond()));
    }
    return String.format(
        Locale.ROOT,
        "Fed from the packed dataset by redirect, the trainer ran %s times as fast as on the"
            + " files one by one, and waited for data %s of the time instead of %s.",
        gain < 9.95 ? oneDecimal(gain) : rounded(gain),
        percent(redirect.stallShare()),
        percent(files.stallShare()));
  }

  /** The numbers that matter, in words. */
  String stalls() {
    return String.format(
        Locale.ROOT,
        "The trainer waited for data %s of the time with the files one by one, %s with"
            + " sample-order, and %s with redirect (%s s, of which %s s in the first twentieth of the"
            + " epoch, while its memory fills).",
        percent(files.stallShare()),
        percent(sampleOrder.stallShare()),
        percent(redirect.stallShare()),
        seconds(redirect.stallNanos()),
        seconds(redirect.stallNanosUntil((int) snapshot.sampleCount() / 20)));
  }

  /** Writes the page. */
  void write(Path file) {
    PageFile.at(file).write(html());
  }

  String html() {
    ReportPage page = new ReportPage("Gristway demo: feeding a trainer from cold storage");
    page.lead(conclusion());
    addSpeed(page);
    addEpoch(page);
    addShuffle(page);
    addLabels(page);
    addWhatWasRun(page);
    addWhenNot(page);
    return page.html();
  }

  private void addSpeed(ReportPage page) {
    List<ChartBars.Bar> speeds = new ArrayList<>();
    List<ChartBars.Bar> stalls = new ArrayList<>();
    for (Drawn drawn : drawn()) {
      DemoRun run = drawn.run();
      String speed = rounded(run.samplesPerSecond());
      speeds.add(new ChartBars.Bar(run.name(), drawn.color(), run.samplesPerSecond(), speed));
      stalls.add(
          new ChartBars.Bar(
              run.name(), drawn.color(), run.stallShare(), percent(run.stallShare())));
    }
    page.heading("Speed")
        .text(
            String.format(
                Locale.ROOT,
                "The same pretend trainer was fed in three ways, each for an epoch from cold"
                    + " storage. It takes a batch of %d samples, checks every byte, and is busy for"
                    + " %s ms: %s samples a second if it never waits, %.0f %% of what this disk can"
                    + " stream.",
                DemoTrainer.BATCH_SIZE,
                oneDecimal(setting.stepNanos() / 1e6),
                Text.number(setting.trainerRate()),
                100 * setting.trainerShare()))
        .pair(
            new ReportPage.Figure(
                ChartBars.svg(
                    "Samples that the trainer got, a second", setting.trainerRate(), speeds),
                "The whole width is what the trainer could take."),
            new ReportPage.Figure(
                ChartBars.svg("Time that the trainer waited for data", 1, stalls),
                "The whole width is all of its time."))
        .text(stalls());
    List<List<String>> rows = new ArrayList<>();
    for (DemoRun run : runs()) {
      rows.add(
          List.of(
              run.name() + (run.complete() ? "" : " (stopped early)"),
              rounded(run.samplesPerSecond()),
              rounded(run.bytesPerSecond() / 1e6),
              String.format(Locale.ROOT, "%.2f", run.seconds()),
              percent(run.stallShare()),
              Text.number(Math.round(run.steps()[0].nanos() / 1e6)) + " ms",
              Text.number(run.cost().reads()),
              rounded(run.cost().readBytes() / 1e6)));
    }
    page.table(
        List.of(
            "", "samples/s", "MB/s", "seconds", "waited", "first batch after", "reads", "MB read"),
        rows);
    if (!runs().stream().allMatch(DemoRun::complete)) {
      page.text(
          "Where a way was stopped early because it took too long, the numbers are those of the"
              + " part that was read.");
    }
  }

  private String deliveries() {
    double longest = 0;
    for (DemoRun run : runs()) {
      longest = Math.max(longest, run.seconds());
    }
    double all = snapshot.sampleCount() / 1e3;
    Chart chart =
        new Chart(
            480,
            300,
            "Samples delivered over time, for the three ways of reading",
            new ChartAxis("seconds", 0, longest),
            ChartAxis.upTo("Samples delivered, in thousands", all));
    for (Drawn drawn : drawn()) {
      DemoRun run = drawn.run();
      int count = run.steps().length;
      double[] xs = new double[count + 1];
      double[] ys = new double[count + 1];
      for (int i = 0; i < count; i++) {
        xs[i + 1] = run.steps()[i].nanos() / 1e9;
        ys[i + 1] = run.steps()[i].samples() / 1e3;
      }
      chart.line(run.name(), drawn.color(), drawn.dashes(), xs, ys);
    }
    double ideal = snapshot.sampleCount() / (double) setting.trainerRate();
    chart.line(
        "never waits",
        ChartColor.GREY,
        "1 3",
        new double[] {0, Math.min(ideal, longest)},
        new double[] {0, all * Math.min(1, longest / ideal)});
    return chart.svg();
  }

  private void addEpoch(ReportPage page) {
    double budget = setting.memory() / (double) (1 << 20);
    Chart chart =
        new Chart(
            480,
            300,
            "Memory used over the epoch by sample-order and redirect, and the budget",
            new ChartAxis("samples delivered, %", 0, 100),
            ChartAxis.upTo("Memory in use, MiB", budget * 1.05));
    for (Drawn drawn : drawn().subList(1, 3).reversed()) {
      DemoRun run = drawn.run();
      int count = run.steps().length;
      double[] xs = new double[count];
      double[] ys = new double[count];
      for (int i = 0; i < count; i++) {
        xs[i] = 100.0 * run.steps()[i].samples() / snapshot.sampleCount();
        ys[i] = run.steps()[i].residentBytes() / (double) (1 << 20);
      }
      chart.line(run.name(), drawn.color(), drawn.dashes(), xs, ys);
    }
    chart.level("budget", ChartColor.GREY, budget);
    page.heading("Over the epoch")
        .text(
            String.format(
                Locale.ROOT,
                "Reading may use %s, a tenth of the data, and never goes beyond. It is in use from"
                    + " the first batch on and empties at the end, when nothing is left to read.",
                Text.bytes(setting.memory())))
        .pair(
            new ReportPage.Figure(
                deliveries(), "Steeper is faster; the dotted line is a trainer that never waits."),
            new ReportPage.Figure(
                chart.svg(),
                "Frames in use when a batch arrives. A frame of sample-order holds one sample, one"
                    + " of redirect a whole extent. The batches on their way to the trainer, four"
                    + " in all three ways, come on top."));
  }

  private void addShuffle(ReportPage page) {
    long[] none = orders.onDisk();
    page.heading("Shuffle")
        .text(
            "sample-order delivers a full shuffle, as the files one by one do. redirect delivers"
                + " each sample once too, in a random order, but one that is drawn from what is in"
                + " memory: that is why it can read the disk in large pieces.")
        .three(
            scatter("No shuffle", ChartColor.GREY, none),
            scatter("redirect", ChartColor.BLUE, redirected),
            scatter("Full shuffle (sample-order)", ChartColor.ORANGE, shuffled))
        .text(
            String.format(
                Locale.ROOT,
                "What is left of the order on disk shows only among close neighbours. An extent is"
                    + " a run of neighbours that is read at once, here %s, about %d samples. Each row"
                    + " below is one extent, each dot one of its samples: a full shuffle spreads"
                    + " them over all of the epoch, redirect over the time for which the memory"
                    + " holds them.",
                Text.bytes(setting.extentBytes()),
                Math.round(snapshot.sampleCount() / (double) cuts.count())))
        .three(
            neighbours("No shuffle", ChartColor.GREY, none),
            neighbours("redirect", ChartColor.BLUE, redirected),
            neighbours("Full shuffle (sample-order)", ChartColor.ORANGE, shuffled));
    Quality.Report of0 = DemoRun.quality(none, cuts);
    Quality.Report of1 = DemoRun.quality(redirected, cuts);
    Quality.Report of2 = DemoRun.quality(shuffled, cuts);
    page.wordTable(
        List.of("", "no shuffle", "redirect", "full shuffle", ""),
        List.of(
            List.of(
                "mate ratio",
                rounded(of0.mateRatio()),
                rounded(of1.mateRatio()),
                rounded(of2.mateRatio()),
                "How often two samples of a batch come from the same extent, relative to chance;"
                    + " 1 is a full shuffle. redirect gives about data / memory."),
            List.of(
                "spread",
                rounded(of0.spread()),
                rounded(of1.spread()),
                rounded(of2.spread()),
                "How far apart in the epoch the samples of an extent come, relative to a full"
                    + " shuffle; 1 is a full shuffle."),
            List.of(
                "extents in a batch",
                rounded(of0.distinctExtents()),
                rounded(of1.distinctExtents()),
                rounded(of2.distinctExtents()),
                String.format(
                    Locale.ROOT,
                    "From how many of the %s extents the %d samples of a batch come, on average.",
                    Text.number(cuts.count()),
                    DemoTrainer.BATCH_SIZE))));
  }

  private ReportPage.Figure scatter(String name, ChartColor color, long[] order) {
    Points points = orders.scatter(order, DOTS);
    Chart chart =
        new Chart(
            320,
            320,
            name + ": position on the disk against position in the epoch",
            new ChartAxis("position in the epoch, %", 0, 100),
            new ChartAxis("Position on the disk, %", 0, 100));
    return new ReportPage.Figure(
        chart.dots(color, points.xs(), points.ys()).svg(),
        name + ": " + Text.count(points.xs().length, "sample"));
  }

  private ReportPage.Figure neighbours(String name, ChartColor color, long[] order) {
    int rows = (int) Math.min(ROWS, cuts.count());
    Points points = orders.neighbours(order, rows);
    Chart chart =
        new Chart(
            320,
            300,
            name + ": when the samples of an extent come, a row for each of " + rows + " extents",
            new ChartAxis("position in the epoch, %", 0, 100),
            new ChartAxis("Extents, a row each", 0, rows));
    return new ReportPage.Figure(
        chart.withoutNumbersOfY().dots(color, points.xs(), points.ys()).svg(), name);
  }

  private void addLabels(ReportPage page) {
    List<ChartStrips.Part> labels = new ArrayList<>();
    List<ChartColor> colors =
        List.of(
            ChartColor.BLUE,
            ChartColor.ORANGE,
            ChartColor.GREEN,
            ChartColor.PURPLE,
            ChartColor.YELLOW);
    for (int i = 0; i < DemoImages.CLASSES.size(); i++) {
      labels.add(new ChartStrips.Part(DemoImages.CLASSES.get(i), colors.get(i)));
    }
    double[][] ofRedirect = orders.labelShares(redirected, labels.size());
    double[][] ofShuffle = orders.labelShares(shuffled, labels.size());
    String strips =
        ChartStrips.svg(
            "Labels of each batch",
            "first batch",
            "last",
            labels,
            List.of(
                new ChartStrips.Strip(
                    "files by name, no shuffle",
                    orders.labelShares(orders.byName(), labels.size())),
                new ChartStrips.Strip("redirect", ofRedirect),
                new ChartStrips.Strip("full shuffle (sample-order)", ofShuffle)));
    page.heading("Labels in a batch")
        .text(
            "A batch should hold a fair mix of labels. Packing has shuffled which samples lie"
                + " beside each other, so what redirect reads at once is a mix already.")
        .pair(
            new ReportPage.Figure(
                strips, "A column is a batch, divided by the labels of its samples."),
            new ReportPage.Figure(
                labelHistogram(ofRedirect),
                "How often a label has this share of a batch: what redirect gave, and what a full"
                    + " shuffle gives by chance."));
  }

  private static String labelHistogram(double[][] shares) {
    DemoLabelShares counted = DemoLabelShares.of(shares, DemoTrainer.BATCH_SIZE);
    double most = 0;
    for (int i = 0; i < counted.expected().length; i++) {
      most = Math.max(most, Math.max(counted.expected()[i], counted.found()[i]));
    }
    double[] middles = counted.middles();
    return new Chart(
            480,
            300,
            "How often a label has which share of a batch, against what is expected",
            new ChartAxis(
                "share of a label in a batch, %", middles[0], middles[middles.length - 1]),
            ChartAxis.upTo("Batches, %", most))
        .columns("redirect", ChartColor.BLUE, counted.width(), middles, counted.found())
        .line("by chance", ChartColor.ORANGE, "", middles, counted.expected())
        .svg();
  }

  private void addWhatWasRun(ReportPage page) {
    String name = Text.shellQuote(setting.dataset().toAbsolutePath().toString());
    page.heading("What was run")
        .wordTable(
            List.of(),
            List.of(
                List.of("day", LocalDate.now().toString()),
                List.of("version", Version.text()),
                List.of("machine", DemoMachine.text()),
                List.of("file system", setting.fileSystem()),
                List.of(
                    "storage streams",
                    rounded(setting.streamRate() / 1e6) + " MB/s (when verifying)"),
                List.of(
                    "files",
                    Text.number(snapshot.sampleCount())
                        + " in "
                        + DemoImages.CLASSES.size()
                        + " classes, "
                        + Text.bytes(snapshot.dataBytes())
                        + ", on average "
                        + Text.bytes(snapshot.dataBytes() / (double) snapshot.sampleCount())),
                List.of("dataset", Text.count(snapshot.chunkCount(), "chunk")),
                List.of("memory for reading", Text.bytes(setting.memory()) + ", a tenth"),
                List.of("cold storage", setting.cold().text()),
                List.of(
                    "files one by one", "one thread that reads ahead, as a simple loader does")))
        .text("To repeat all of it, or the reading alone:")
        .commands(
            List.of(
                "./gristway demo",
                "./gristway read " + name + " --policy redirect --memory 10%",
                "./gristway read " + name + " --policy sample-order --memory 10%",
                "./gristway plan " + name + " --memory 10%"));
  }

  private void addWhenNot(ReportPage page) {
    page.heading("When it does not help")
        .list(
            List.of(
                String.format(
                    Locale.ROOT,
                    "A trainer that takes fewer than about %s samples a second from this disk is"
                        + " fed well enough by the files one by one.",
                    rounded(files.samplesPerSecond())),
                "Data that fits in memory is read from there after the first epoch, packed or not.",
                "On a fast local disk, with few files or with large ones, reading is seldom what"
                    + " training waits for.",
                "Where training needs the exact order of a full shuffle, sample-order gives it from"
                    + " the same dataset, at one small read for each sample."));
  }

  private static String percent(double share) {
    return String.format(Locale.ROOT, share < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * share);
  }

  private static String oneDecimal(double value) {
    return String.format(Locale.ROOT, "%.1f", value);
  }

  private static String seconds(long nanos) {
    return String.format(Locale.ROOT, "%.2f", nanos / 1e9);
  }

  /** To three digits, and no more than two behind the point. */
  static String rounded(double value) {
    if (value < 0.005) {
      return "0";
    }
    double power = Math.pow(10, Math.floor(Math.log10(value)) - 2);
    double rounded = Math.round(value / power) * power;
    int decimals = (int) Math.clamp(2 - Math.floor(Math.log10(rounded) + 1e-9), 0, 2);
    return String.format(Locale.ROOT, "%,." + decimals + "f", rounded);
  }
}
