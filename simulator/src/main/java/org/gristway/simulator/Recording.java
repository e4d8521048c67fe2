package org.gristway.simulator;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Notes what a run does: how the first node gets on, in some hundred moments however long the run
 * is, and what each node has done in the end. For one thread.
 */
final class Recording {

  private static final int MOST = 512;

  private final NodeSample sample;
  private final int ranksPerNode;
  private final List<Simulated.Moment> moments = new ArrayList<>();
  private long steps;
  private long stride = 1; // steps from one moment to the next

  Recording(Scenario scenario, NodeSample sample) {
    this.sample = sample;
    this.ranksPerNode = scenario.ranksPerNode();
  }

  /** Notes the end of a step. */
  void add(Training training, Machines machines, long residentBytes) {
    if (++steps % stride != 0) {
      return;
    }
    moments.add(
        new Simulated.Moment(
            training.end(0),
            residentBytes,
            machines.storageBytes()[sample.nodes()[0]],
            machines.networkBytes()[sample.nodes()[0]],
            stalled(training, 0)));
    if (moments.size() == MOST) {
      stride *= 2;
      // Those stay that the longer stride would have met.
      for (int i = 0; i < MOST / 2; i++) {
        moments.set(i, moments.get(2 * i + 1));
      }
      moments.subList(MOST / 2, MOST).clear();
    }
  }

  /** How long the rank of a node, by its place in the sample, has waited that waited longest. */
  private double stalled(Training training, int node) {
    double most = 0;
    for (int i = 0; i < ranksPerNode; i++) {
      most = Math.max(most, training.stalled(node * ranksPerNode + i));
    }
    return most;
  }

  /** What the run comes to. */
  Simulated outcome(String policy, Training training, Machines machines, long peakResidentBytes) {
    double[] stalls = new double[sample.nodes().length];
    Arrays.setAll(stalls, i -> stalled(training, i));
    double[] read = ofSample(machines.storageBytes());
    double[] received = ofSample(machines.networkBytes());
    Simulated.Balance stall = balance(stalls);
    return new Simulated(
        policy,
        "",
        training.now(),
        stall.most(),
        ofAll(read),
        ofAll(received),
        peakResidentBytes,
        training.epochSeconds(),
        new Simulated.Nodes(balance(read), balance(received), stall),
        List.copyOf(moments));
  }

  private double[] ofSample(long[] byNode) {
    return Arrays.stream(sample.nodes()).mapToDouble(node -> byNode[node]).toArray();
  }

  private long ofAll(double[] values) {
    return Math.round(Arrays.stream(values).sum() * sample.scale());
  }

  private static Simulated.Balance balance(double[] values) {
    double least = Double.POSITIVE_INFINITY;
    double sum = 0;
    double most = 0;
    for (double value : values) {
      least = Math.min(least, value);
      sum += value;
      most = Math.max(most, value);
    }
    return new Simulated.Balance(least, sum / values.length, most);
  }
}
