package org.gristway.cli;

import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.gristway.plan.ExtentCuts;
import org.gristway.read.LoaderOptions;
import org.gristway.simulator.CostModel;
import org.gristway.simulator.CostModel.Network;
import org.gristway.simulator.CostModel.Storage;
import org.gristway.simulator.CostModel.Work;
import org.gristway.simulator.Curve;

/** Turns what a probe has measured into what the simulator asks for. */
public final class ProbeCosts {

  private ProbeCosts() {}

  /**
   * The machine that was probed, or several like it, each with such storage of its own. A sample is
   * copied at the rate at which one thread copies and checks, and takes what the loader needs for
   * one that is neither read nor copied.
   *
   * @param work that ranks do
   */
  public static CostModel of(ProbeResult probe, Work work) {
    double none = Double.POSITIVE_INFINITY;
    return new CostModel(
        storage(probe),
        new Network(0, none, none),
        probe.checkedRate(),
        probe.sampleSeconds(),
        none,
        probe.processors(),
        work);
  }

  /**
   * The storage that was probed. A read that is alone takes a latency and then its bytes at some
   * rate: the smallest and the largest reads that were measured alone decide on both. Several at
   * once take no longer each, up to what was seen with as many at once as were tried most ({@link
   * #bySize}). A node has as many reads under way as the loader has threads.
   */
  static Storage storage(ProbeResult probe) {
    ProbeResult.Reads smallest = probe.alone().getFirst();
    ProbeResult.Reads largest = probe.alone().getLast();
    double more = largest.seconds() - smallest.seconds();
    // Where the limit is one of reads a second, those of all sizes may take the same time.
    double stream =
        more > 0 ? (largest.bytes() - smallest.bytes()) / more : Double.POSITIVE_INFINITY;
    return new Storage(
        Math.max(0, smallest.seconds() - smallest.bytes() / stream),
        probe.bestRate(),
        probe.mostRequests(),
        bySize(probe.mostAtOnce()),
        byDepth(probe),
        perProcessor(probe.mostAtOnce()),
        Curve.constant(stream),
        Curve.constant(Double.POSITIVE_INFINITY),
        Double.POSITIVE_INFINITY,
        LoaderOptions.DEFAULT_THREADS,
        ExtentCuts.PAGE);
  }

  /** How much less there is with fewer reads at once, on the average of the sizes. */
  private static Curve byDepth(ProbeResult probe) {
    NavigableMap<Double, Double> points = new TreeMap<>();
    List<ProbeResult.Reads> most = probe.mostAtOnce();
    for (int depth : probe.reads().stream().mapToInt(ProbeResult.Reads::atOnce).toArray()) {
      List<ProbeResult.Reads> fewer = probe.atOnce(depth);
      double sum = 0;
      for (int i = 0; i < most.size(); i++) {
        sum += Math.min(1, fewer.get(i).rate() / most.get(i).rate());
      }
      points.put((double) depth, sum / most.size());
    }
    return new Curve(points);
  }

  /** What processors have work with that read, beside which they copy and check. */
  private static Curve perProcessor(List<ProbeResult.Reads> measured) {
    NavigableMap<Double, Double> points = new TreeMap<>();
    for (ProbeResult.Reads each : measured) {
      points.put((double) each.bytes(), each.perProcessor());
    }
    return new Curve(points);
  }

  /**
   * Bytes a second by the size of a read. Between two sizes that were measured, there are as many
   * reads a second as of the smaller one until they are as many bytes as of the larger: either the
   * one or the other is what limits storage.
   */
  private static Curve bySize(List<ProbeResult.Reads> measured) {
    NavigableMap<Double, Double> points = new TreeMap<>();
    for (int i = 0; i < measured.size(); i++) {
      ProbeResult.Reads each = measured.get(i);
      points.put((double) each.bytes(), each.rate());
      if (i + 1 < measured.size()) {
        ProbeResult.Reads larger = measured.get(i + 1);
        double asManyBytes = larger.rate() / each.perSecond();
        if (asManyBytes > each.bytes() && asManyBytes < larger.bytes()) {
          points.put(asManyBytes, larger.rate());
        }
      }
    }
    return new Curve(points);
  }
}
