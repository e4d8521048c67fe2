package org.gristway.simulator;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.gristway.Progress;
import org.gristway.plan.SampleLayout;

/**
 * Runs scenarios that differ in something but the dataset, to see what that makes for each policy.
 * As many policies run at once as there are processors.
 */
public final class Study {

  private final List<Scenario> scenarios;
  private final SampleLayout layout;

  /**
   * @param scenarios of this dataset
   */
  public Study(List<Scenario> scenarios, SampleLayout layout) {
    this.scenarios = List.copyOf(scenarios);
    this.layout = layout;
  }

  /** For each scenario the outcome of each of its policies. */
  public List<List<Simulated>> run(Progress progress) {
    long samples = 0;
    for (Scenario scenario : scenarios) {
      samples += layout.sampleCount() * scenario.epochs() * scenario.policies().size();
    }
    progress.begin("simulating", Progress.Unit.SAMPLES, samples);
    List<List<CompletableFuture<Simulated>>> runs = new ArrayList<>();
    int atOnce = Runtime.getRuntime().availableProcessors();
    try (ExecutorService threads = Executors.newFixedThreadPool(atOnce)) {
      for (Scenario scenario : scenarios) {
        Simulation simulation = new Simulation(scenario, layout, progress);
        runs.add(
            scenario.policies().stream()
                .map(tried -> CompletableFuture.supplyAsync(() -> simulation.run(tried), threads))
                .toList());
      }
    }
    return runs.stream().map(policies -> policies.stream().map(Study::outcome).toList()).toList();
  }

  private static Simulated outcome(CompletableFuture<Simulated> run) {
    try {
      return run.join();
    } catch (CompletionException thrown) {
      switch (thrown.getCause()) {
        case Error error -> throw error; // such as that memory is not enough
        case RuntimeException bug -> throw bug;
        case null, default -> throw thrown;
      }
    }
  }
}
