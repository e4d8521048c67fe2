package org.gristway.simulator;

import java.util.Arrays;
import org.gristway.plan.Draws;
import org.gristway.plan.Permutation;

/**
 * The nodes of a run that are simulated: all, or some that the seed draws, of which each stands for
 * as many others. Immutable.
 */
final class NodeSample {

  private final int[] nodes;
  private final int[] ranks;
  private final int of;

  NodeSample(Scenario scenario) {
    this.of = scenario.nodes();
    int count = Math.min(of, scenario.simulated());
    Permutation order = new Permutation(of, Draws.key(scenario.seed(), of));
    this.nodes = new int[count];
    Arrays.setAll(nodes, i -> count == of ? i : (int) order.at(i));
    Arrays.sort(nodes);
    int perNode = scenario.ranksPerNode();
    this.ranks = new int[count * perNode];
    Arrays.setAll(ranks, i -> nodes[i / perNode] * perNode + i % perNode);
  }

  /** The nodes that are simulated. */
  int[] nodes() {
    return nodes;
  }

  /** Their ranks: those of the first node, then those of the next. */
  int[] ranks() {
    return ranks;
  }

  /** How many nodes each of them stands for. */
  double scale() {
    return (double) of / nodes.length;
  }
}
