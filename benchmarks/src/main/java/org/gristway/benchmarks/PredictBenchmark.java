package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.gristway.Progress;
import org.gristway.benchmarks.Storage.Profile;
import org.gristway.chart.Chart;
import org.gristway.chart.ChartAxis;
import org.gristway.chart.ChartColor;
import org.gristway.chart.PictureFile;
import org.gristway.cli.ProbeCosts;
import org.gristway.cli.ProbeFile;
import org.gristway.cli.ProbeResult;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Handover;
import org.gristway.plan.Exchange;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.policy.Policies;
import org.gristway.read.LoaderOptions;
import org.gristway.simulator.CostModel.Work;
import org.gristway.simulator.Described;
import org.gristway.simulator.Scenario;
import org.gristway.simulator.Simulated;
import org.gristway.simulator.Simulation;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * What the simulator says that an epoch takes, against what it takes: every policy that can read,
 * on storage of three kinds, at a memory of a tenth of the dataset. The simulator knows the
 * dataset's snapshot and what {@code gristway probe} has measured in the same control group, and
 * nothing of what is read. The trainer takes no time.
 *
 * <p>Epochs are measured once they are steady, and in part where they take long. Of policies that
 * keep what they have read it is the first where the storage is slow, since it takes too long to
 * come to the others, or there is nothing to read in them.
 */
final class PredictBenchmark implements Main.Benchmark {

  /** Of a dataset, such that a tenth holds extents of 1 MiB; less will do to try it out. */
  private static final long BYTES = Long.getLong("gristway.predict.bytes", 1_350_000_000);

  private static final long OVERHEAD = 700L << 20; // of a JVM and the handover
  private static final int SHARE = 10;
  private static final int STEADY_EPOCH = 1;
  private static final String RAMP = "2";
  private static final String WINDOW = "4";
  private static final double ALLOWED = 0.15;
  private static final double ALLOWED_FAST = 0.30;

  /** A prediction and what was measured, in seconds an epoch. */
  private record Point(Profile profile, int size, Arm arm) {

    double predicted() {
      return arm.median("predicted");
    }

    double measured() {
      return arm.median("epoch");
    }

    double deviation() {
      return arm.median("ratio") - 1;
    }

    boolean isWithin() {
      return Math.abs(deviation()) <= (profile == Profile.NVME ? ALLOWED_FAST : ALLOWED);
    }
  }

  /** The datasets, by the size of their samples. */
  private final Map<Integer, Path> datasets = new LinkedHashMap<>();

  /** What was measured last. */
  private @Nullable ProbeResult probe;

  @Override
  public void run(Path folder, int rounds) throws IOException, InterruptedException {
    for (int size : new int[] {110_000, 10_000}) {
      Path tar = Tars.make(folder.resolve("samples.tar"), Math.toIntExact(BYTES / size), size);
      Path dataset = folder.resolve("data-%d.gw".formatted(size));
      Machine.run(Machine.launcher(), "pack", tar.toString(), dataset.toString());
      Files.delete(tar);
      datasets.put(size, dataset);
    }
    String only = System.getProperty("gristway.profiles", "nvme,cloud,hdd");
    List<Point> points = new ArrayList<>();
    for (Profile profile : Profile.values()) {
      if (only.contains(profile.text())) {
        points.addAll(measure(profile, folder, rounds));
      }
    }
    print(points);
    Path picture = folder.resolveSibling("predict.svg");
    Files.writeString(picture, draw(points));
    System.out.println();
    System.out.println("picture: " + picture);
  }

  private static ProbeResult probe(Profile profile, Path folder)
      throws IOException, InterruptedException {
    try (Storage storage = new Storage(profile, folder, Long.MAX_VALUE >> 1, "probe")) {
      String json =
          storage.run(List.of(Machine.launcher(), "probe", folder.toString(), "--json")).output();
      Path file = Files.writeString(folder.resolve("probe.json"), json);
      System.out.println(profile.text() + ": " + json.strip());
      return ProbeFile.read(file);
    }
  }

  /** In each round the storage is probed, and read right after: a machine is not always as fast. */
  private List<Point> measure(Profile profile, Path folder, int rounds)
      throws IOException, InterruptedException {
    long memory = BYTES / SHARE;
    List<Point> points = new ArrayList<>();
    try (Storage storage = new Storage(profile, folder, memory + OVERHEAD, "bounded");
        Storage roomy = new Storage(profile, folder, Long.MAX_VALUE >> 1, "roomy")) {
      datasets.forEach(
          (size, dataset) -> {
            for (String policy : Policies.names()) {
              Storage place = policy.equals("unbounded") ? roomy : storage;
              Arm arm = new Arm(policy, () -> compare(profile, place, dataset, policy, memory));
              points.add(new Point(profile, size, arm));
            }
          });
      for (int round = 0; round < rounds; round++) {
        probe = probe(profile, folder);
        for (Point point : points) {
          point.arm().measure();
        }
      }
    }
    return points;
  }

  private Map<String, Double> compare(
      Profile profile, Storage storage, Path dataset, String policy, long memory)
      throws IOException, InterruptedException {
    double predicted = predict(profile, Objects.requireNonNull(probe), dataset, policy, memory);
    Map<String, Double> values = read(profile, storage, dataset, policy, memory);
    values.put("predicted", predicted);
    values.put("ratio", predicted / Arm.value(values, "epoch"));
    return values;
  }

  /** On slow storage, what those take that keep what they have read. */
  private static boolean isFirstEpoch(Profile profile, String policy) {
    boolean keeps = policy.equals("unbounded") || Policies.named(policy).caches();
    return keeps && profile != Profile.NVME;
  }

  /** Those that read sample by sample take so long on slow storage that a part must do. */
  private static boolean isMeasuredInPart(Profile profile, String policy) {
    boolean bySample =
        policy.equals("sample-order")
            || policy.equals("redirect-position")
            || Policies.named(policy).caches();
    return bySample && profile != Profile.NVME;
  }

  private static double predict(
      Profile profile, ProbeResult probe, Path dataset, String policy, long memory) {
    try (Dataset opened = Dataset.open(dataset)) {
      Snapshot snapshot = opened.snapshot();
      double mean = (double) snapshot.dataBytes() / snapshot.sampleCount();
      double none = Double.POSITIVE_INFINITY;
      Scenario scenario =
          new Scenario(
              policy,
              "",
              new Described(snapshot.sampleCount(), Described.Kind.FIXED, mean, 0, 1),
              STEADY_EPOCH + 2,
              LoaderOptions.DEFAULT_BATCH_SIZE,
              1,
              1,
              1,
              memory,
              0,
              PlanSettings.autoExtent(memory),
              Handover.AREAS_AHEAD,
              Exchange.NONE,
              0,
              ProbeCosts.of(probe, new Work(none, none, 0, true)),
              List.of(
                  new Scenario.Tried(
                      policy,
                      policy.equals("unbounded") ? 2 * BYTES : memory,
                      Handover.AREAS_AHEAD)));
      Simulated result =
          new Simulation(scenario, SampleLayout.of(snapshot), Progress.NONE).run().getFirst();
      if (!result.ran()) {
        throw new IllegalStateException(result.reason());
      }
      return result.epochSeconds().get(isFirstEpoch(profile, policy) ? 0 : STEADY_EPOCH);
    }
  }

  private static Map<String, Double> read(
      Profile profile, Storage storage, Path dataset, String policy, long memory)
      throws IOException, InterruptedException {
    boolean fast = profile == Profile.NVME;
    boolean inPart = isMeasuredInPart(profile, policy);
    String warmUp = fast ? "6" : inPart || isFirstEpoch(profile, policy) ? "0" : "1";
    String epochs = fast || inPart ? "1000" : "1";
    String most = fast || inPart ? WINDOW : "1000";
    String leftOut = inPart ? RAMP : "0";
    // Code is compiled in the first, which is only seen where the storage is not so slow.
    boolean fromItsBegin = isFirstEpoch(profile, policy) && !inPart;
    String loaders = fromItsBegin && profile == Profile.CLOUD ? "2" : "1";
    List<String> command =
        Arm.command(
            "read-arm",
            dataset.toString(),
            policy,
            "" + memory,
            warmUp,
            epochs,
            most,
            leftOut,
            loaders);
    Map<String, Double> values =
        Arm.parse(storage.run(command, dataset.resolve("snapshot-000001.gws")).output());
    try (Dataset opened = Dataset.open(dataset)) {
      double samples = opened.snapshot().sampleCount();
      double seconds = Arm.value(values, "seconds");
      if (fromItsBegin) {
        seconds -= Arm.value(values, "open"); // which no epoch has in it
      }
      // An epoch that is bound by reads takes as long as they do; they need not be as far in it as
      // deliveries are, which in some policies are behind at first, and catch up at the end.
      values.put("epoch", samples * seconds / Arm.value(values, inPart ? "reads" : "samples"));
    }
    return values;
  }

  private static void print(List<Point> points) {
    System.out.println();
    System.out.println(
        "| storage | bytes a sample | policy | predicted | measured | deviation | ratios |");
    System.out.println("|---|---|---|---|---|---|---|");
    for (Point point : points) {
      System.out.printf(
          Locale.ROOT,
          "| %s | %,d | %s | %.3g s | %.3g s | %+.0f %%%s | %s |%n",
          point.profile().text(),
          point.size(),
          point.arm().name,
          point.predicted(),
          point.measured(),
          100 * point.deviation(),
          point.isWithin() ? "" : " (missed)",
          point.arm().spread("ratio", "%.2f"));
    }
    System.out.printf(
        Locale.ROOT,
        "%n%d of %d within %.0f %% (nvme: %.0f %%)%n",
        points.stream().filter(Point::isWithin).count(),
        points.size(),
        100 * ALLOWED,
        100 * ALLOWED_FAST);
  }

  private static String draw(List<Point> points) {
    double least = Double.POSITIVE_INFINITY;
    double most = 0;
    for (Point point : points) {
      least = Math.min(least, Math.min(point.predicted(), point.measured()));
      most = Math.max(most, Math.max(point.predicted(), point.measured()));
    }
    ChartAxis x = ChartAxis.ofPowers("measured, seconds an epoch", 10, least, most);
    ChartAxis y = ChartAxis.ofPowers("predicted, seconds an epoch", 10, least, most);
    Chart chart =
        new Chart(
            560,
            560,
            "Predicted against measured seconds of an epoch: dots lie along the diagonal",
            x,
            y);
    band(chart, "equal", "", 0, x);
    band(chart, "15 %", "6 3", ALLOWED, x);
    band(chart, "30 %", "2 3", ALLOWED_FAST, x);
    for (Profile profile : Profile.values()) {
      List<Point> of = points.stream().filter(point -> point.profile() == profile).toList();
      if (!of.isEmpty()) {
        double[] xs = of.stream().mapToDouble(Point::measured).toArray();
        double[] ys = of.stream().mapToDouble(Point::predicted).toArray();
        chart.dots(profile.text(), color(profile), xs, ys);
      }
    }
    return PictureFile.of(chart.svg());
  }

  private static ChartColor color(Profile profile) {
    return switch (profile) {
      case NVME -> ChartColor.BLUE;
      case CLOUD -> ChartColor.GREEN;
      case HDD -> ChartColor.ORANGE;
    };
  }

  /** Lines along which predictions are too high and too low by a share. */
  private static void band(Chart chart, String name, String dashes, double share, ChartAxis axis) {
    double over = 1 + share;
    double under = 1 - share;
    double low = axis.low();
    double high = axis.high();
    double[] measured = {low, high / over, Double.NaN, low / under, high};
    double[] predicted = {low * over, high, Double.NaN, low, high * under};
    chart.line(name, ChartColor.GREY, dashes, measured, predicted);
  }
}
