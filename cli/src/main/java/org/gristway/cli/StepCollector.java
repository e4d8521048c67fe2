package org.gristway.cli;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Brings together what all ranks get at a step. Ranks run at their own speed, so a step waits here
 * until the slowest has come to it; since each rank goes through its steps in order, so do complete
 * steps. Any thread may add.
 */
final class StepCollector<T> {

  /** Takes complete steps, one at a time and in their order. */
  interface Sink<T> {
    void step(long epoch, long step, List<T> ofRanks) throws IOException;
  }

  private record Step(long epoch, long number) {}

  private final int ranks;
  private final Sink<T> sink;
  private final Map<Step, TreeMap<Integer, T>> waiting = new HashMap<>();

  StepCollector(int ranks, Sink<T> sink) {
    this.ranks = ranks;
    this.sink = sink;
  }

  synchronized void add(long epoch, long step, int rank, T batch) throws IOException {
    Step at = new Step(epoch, step);
    TreeMap<Integer, T> ofRanks = waiting.computeIfAbsent(at, _ -> new TreeMap<>());
    ofRanks.put(rank, batch);
    if (ofRanks.size() == ranks) {
      waiting.remove(at);
      sink.step(epoch, step, List.copyOf(ofRanks.values()));
    }
  }
}
