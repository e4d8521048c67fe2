package org.gristway.cli;

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
   * The machine that was probed, or several like it, each with such storage of its own.
   *
   * @param work that ranks do
   */
  public static CostModel of(ProbeResult probe, Work work) {
    double none = Double.POSITIVE_INFINITY;
    return new CostModel(storage(probe), new Network(0, none, none), probe.copyRate(), none, work);
  }

  /**
   * The storage that was probed. A read that is alone takes a latency and then its bytes at some
   * rate: the smallest and the largest reads that were measured alone decide on both. Several at
   * once take no longer each, up to the most bytes a second and the most reads a second that were
   * seen with any size and number of them: that is what a disk's queue does, and what the limits of
   * a rented disk do. A node has as many reads under way as the loader has threads.
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
        Curve.constant(stream),
        Curve.constant(Double.POSITIVE_INFINITY),
        Double.POSITIVE_INFINITY,
        LoaderOptions.DEFAULT_THREADS,
        ExtentCuts.PAGE);
  }
}
