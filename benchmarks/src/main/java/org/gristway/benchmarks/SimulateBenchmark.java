package org.gristway.benchmarks;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.gristway.Progress;
import org.gristway.chart.Chart;
import org.gristway.chart.ChartAxis;
import org.gristway.chart.ChartLines;
import org.gristway.chart.PictureFile;
import org.gristway.plan.SampleLayout;
import org.gristway.simulator.Described;
import org.gristway.simulator.Scenario;
import org.gristway.simulator.Scenarios;
import org.gristway.simulator.Simulated;
import org.gristway.simulator.Simulation;
import org.gristway.simulator.Study;

/**
 * The simulator at scale: ImageNet on up to a thousand nodes, by every policy, and what simulating
 * costs by the number of samples and of nodes. Pictures are left beside the folder.
 */
final class SimulateBenchmark implements Main.Benchmark {

  private static final int[] TO_1024 = {1, 4, 16, 64, 256, 1_024};

  private static final int[] TO_256 = {1, 4, 16, 64, 256};

  private static final List<String> COSTED =
      List.of("redirect", "sample-order", "clairvoyant", "locality", "staging");
  private static final long[] SAMPLES = {80_000, 160_000, 320_000, 640_000, 1_280_000};
  private static final int[] NODES = {1, 4, 16, 64, 256, 1_024};

  private final Map<String, String> pictures = new LinkedHashMap<>(); // by file name
  private long nextSeed;

  @Override
  public void run(Path folder, int rounds) throws IOException {
    long start = System.nanoTime();
    List<List<Simulated>> all = scale("imagenet-1k", TO_1024);
    Scenario large = Scenarios.named("imagenet-21k");
    scale(large.name(), TO_256);
    System.out.printf(
        Locale.ROOT,
        "%nboth: %.0f s, in a heap that may have %.0f MB%n",
        (System.nanoTime() - start) / 1e9,
        Runtime.getRuntime().maxMemory() / 1e6);
    sampled(all, large.simulated());
    cost(rounds);
    for (Map.Entry<String, String> picture : pictures.entrySet()) {
      Path file = folder.resolveSibling(picture.getKey());
      Files.writeString(file, PictureFile.of(picture.getValue()));
      System.out.println("picture: " + file);
    }
  }

  /** How far from all nodes those are that stand for all. */
  private static void sampled(List<List<Simulated>> all, int simulated) {
    List<List<Simulated>> some =
        study(Scenarios.named("imagenet-1k").withSimulated(simulated), TO_1024);
    System.out.printf(
        "%nimagenet-1k, %d nodes for all: deviation of the seconds of the last epoch%n%n",
        simulated);
    System.out.println("| nodes | mean | largest | of |\n|---|---|---|---|");
    for (int i = 0; i < TO_1024.length; i++) {
      double sum = 0;
      double largest = 0;
      String which = "";
      int count = 0;
      for (int policy = 0; policy < all.get(i).size(); policy++) {
        Simulated exact = all.get(i).get(policy);
        if (exact.ran()) {
          double other = some.get(i).get(policy).epochSeconds().getLast();
          double deviation = Math.abs(other / exact.epochSeconds().getLast() - 1);
          sum += deviation;
          count++;
          which = deviation > largest ? exact.policy() : which;
          largest = Math.max(largest, deviation);
        }
      }
      System.out.printf(
          Locale.ROOT,
          "| %,d | %.1f %% | %.1f %% | %s |%n",
          TO_1024[i],
          100 * sum / count,
          100 * largest,
          which);
    }
  }

  private static List<List<Simulated>> study(Scenario scenario, int[] nodes) {
    List<Scenario> counts = Arrays.stream(nodes).mapToObj(scenario::withNodes).toList();
    SampleLayout layout = scenario.dataset().layout(scenario.seed());
    return new Study(counts, layout).run(Progress.NONE);
  }

  private List<List<Simulated>> scale(String name, int[] nodes) {
    long start = System.nanoTime();
    Scenario scenario = Scenarios.named(name);
    List<List<Simulated>> results = study(scenario, nodes);
    System.out.printf(
        Locale.ROOT, "%n%s, seconds of the last epoch (of the first)%n%n| policy |", name);
    Arrays.stream(nodes).forEach(count -> System.out.printf(Locale.ROOT, " %,d |", count));
    System.out.println("\n|---" + "|---".repeat(nodes.length) + "|");
    ChartLines lines =
        new ChartLines(scenario.policies().stream().map(Scenario.Tried::name).toList());
    for (int policy = 0; policy < scenario.policies().size(); policy++) {
      String itsName = scenario.policies().get(policy).name();
      System.out.printf("| %s |", itsName);
      for (int i = 0; i < nodes.length; i++) {
        Simulated result = results.get(i).get(policy);
        if (result.ran()) {
          double last = result.epochSeconds().getLast();
          lines.add(itsName, nodes[i], last);
          System.out.printf(
              Locale.ROOT, " %s (%s) |", round(last), round(result.epochSeconds().getFirst()));
        } else {
          System.out.print(" – |");
        }
      }
      System.out.println();
    }
    System.out.printf(Locale.ROOT, "%n%.0f s%n", (System.nanoTime() - start) / 1e9);
    draw(
        "simulator-" + name + ".svg",
        lines,
        lines.powersOfX("nodes", 4),
        lines.powersOfY("seconds of an epoch, " + name, 10));
    return results;
  }

  private static String round(double seconds) {
    return String.format(Locale.ROOT, seconds < 100 ? "%.1f" : "%,.0f", seconds);
  }

  /** What simulating takes: the time of a processor, not of the clock. */
  private void cost(int rounds) {
    Scenario scenario = Scenarios.named("imagenet-1k");
    System.out.println("\nprocessor seconds of simulating two epochs, medians");
    System.out.println("\n| policy | samples | nodes | seconds | microseconds a sample |");
    System.out.println("|---|---|---|---|---|");
    ChartLines bySamples = new ChartLines(COSTED);
    ChartLines byNodes = new ChartLines(COSTED);
    for (String policy : COSTED) {
      for (long samples : SAMPLES) {
        bySamples.add(
            policy, samples / 1e6, seconds(scenario.withNodes(16), policy, samples, rounds));
      }
      for (int nodes : NODES) {
        byNodes.add(policy, nodes, seconds(scenario.withNodes(nodes), policy, 640_000, rounds));
      }
    }
    String label = "processor seconds of simulating two epochs";
    draw(
        "simulator-cost-samples.svg",
        bySamples,
        bySamples.upToX("million samples, on 16 nodes"),
        bySamples.upToY(label));
    draw(
        "simulator-cost-nodes.svg",
        byNodes,
        byNodes.powersOfX("nodes, with 640,000 samples", 4),
        byNodes.upToY(label));
  }

  /** With a dataset of its own in each round, or policies would have its tables already. */
  private double seconds(Scenario scenario, String policy, long samples, int rounds) {
    Described all = scenario.dataset();
    Described part = new Described(samples, all.kind(), all.mean(), all.deviation(), all.classes());
    Scenario asked = scenario.withDataset(part).withPolicies(List.of(policy));
    double[] times = new double[rounds];
    for (int round = -1; round < rounds; round++) { // the first is for the compiler
      SampleLayout layout = part.layout(nextSeed++);
      long start = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      new Simulation(asked, layout, Progress.NONE).run(asked.policies().getFirst());
      long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      times[Math.max(0, round)] = (end - start) / 1e9;
    }
    Arrays.sort(times);
    double median = times[rounds / 2];
    System.out.printf(
        Locale.ROOT,
        "| %s | %,d | %,d | %.2f | %.2f |%n",
        policy,
        samples,
        scenario.nodes(),
        median,
        median * 1e6 / samples / scenario.epochs());
    return median;
  }

  private void draw(String file, ChartLines lines, ChartAxis x, ChartAxis y) {
    Chart chart = new Chart(720, 480, y.label() + " against " + x.label(), x, y);
    pictures.put(file, lines.on(chart).svg());
  }
}
