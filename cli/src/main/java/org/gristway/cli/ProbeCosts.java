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

  /** Bytes a second by the size of a read: those that were measured, and two between any two. */
  private static Curve bySize(List<ProbeResult.Reads> measured) {
    NavigableMap<Double, Double> points = new TreeMap<>();
    measured.forEach(each -> points.put((double) each.bytes(), each.rate()));
    double best = measured.stream().mapToDouble(ProbeResult.Reads::rate).max().orElseThrow();
    for (int i = 0; i + 1 < measured.size(); i++) {
      Between between = Between.of(measured, i, best);
      for (double bytes : new double[] {between.middle(), between.bend()}) {
        points.putIfAbsent(bytes, bytes / between.seconds(bytes));
      }
    }
    return new Curve(points);
  }

  /**
   * What a read takes of the storage whose size is between two that were measured. Level while
   * requests are the limit, it rises with the bytes where those are, and ever faster from one to
   * the other. So it lies below the line between the two; and above those through neighbours on
   * each side, drawn on. It is taken to be what these have it to be, which is right where one limit
   * takes over from the other at once, as in storage that is rented by them.
   *
   * @param before the next smaller read, or again the smaller of the two
   * @param after the next larger read, or again the larger
   * @param best bytes a second of any size
   */
  private record Between(
      ProbeResult.Reads before,
      ProbeResult.Reads smaller,
      ProbeResult.Reads larger,
      ProbeResult.Reads after,
      double best) {

    static Between of(List<ProbeResult.Reads> measured, int smaller, double best) {
      return new Between(
          measured.get(Math.max(0, smaller - 1)),
          measured.get(smaller),
          measured.get(smaller + 1),
          measured.get(Math.min(measured.size() - 1, smaller + 2)),
          best);
    }

    double seconds(double bytes) {
      double most = line(smaller, larger, bytes);
      return Math.min(most, Math.max(fromBelow(bytes), fromAbove(bytes)));
    }

    /** Between them on a scale of powers. */
    double middle() {
      return Math.sqrt((double) smaller.bytes() * larger.bytes());
    }

    /** Where that from above takes over. */
    double bend() {
      double low = smaller.bytes();
      double high = larger.bytes();
      while (high - low > 1) {
        double middle = (low + high) / 2;
        if (fromBelow(middle) > fromAbove(middle)) {
          low = middle;
        } else {
          high = middle;
        }
      }
      return Math.rint(high);
    }

    /** What it takes at least, by the smaller reads. */
    private double fromBelow(double bytes) {
      return Math.max(smaller.seconds(), line(before, smaller, bytes));
    }

    /** What it takes at least, by the larger reads. */
    private double fromAbove(double bytes) {
      return Math.max(bytes / best, line(larger, after, bytes));
    }

    private static double line(ProbeResult.Reads one, ProbeResult.Reads other, double bytes) {
      if (one.equals(other)) {
        return 0; // nothing is known of it
      }
      double slope = (other.seconds() - one.seconds()) / (other.bytes() - one.bytes());
      return one.seconds() + slope * (bytes - one.bytes());
    }
  }
}
