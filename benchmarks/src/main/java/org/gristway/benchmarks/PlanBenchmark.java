package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;
import org.gristway.snapshot.Snapshot;

/**
 * Planning one epoch, in a process of its own on one core with 256 MiB of heap, cutting extents
 * included: ten million samples of a real snapshot, and a hundred million that are only described.
 */
final class PlanBenchmark implements Main.Benchmark {

  private static final String DESCRIBED = "described";

  @Override
  public void run(Path folder, int rounds) throws IOException, InterruptedException {
    String snapshot = SnapshotBenchmark.write(folder).toString();
    System.out.println("| samples | policy | seconds | heap at most | rounds |");
    System.out.println("|---|---|---|---|---|");
    for (String policy : Policies.names()) {
      measure("10,000,000", snapshot, policy, rounds);
    }
    measure("100,000,000 (described)", DESCRIBED, "redirect", rounds);
  }

  private static void measure(String samples, String layout, String policy, int rounds)
      throws IOException, InterruptedException {
    Arm arm =
        new Arm(
            policy,
            () -> {
              List<String> command = new ArrayList<>(List.of("taskset", "-c", "0"));
              command.addAll(Arm.command("plan-arm", layout, policy));
              return Arm.parse(Machine.run(command.toArray(String[]::new)));
            });
    for (int round = 0; round < rounds; round++) {
      arm.measure();
    }
    System.out.printf(
        Locale.ROOT,
        "| %s | %s | %.2f | 256 MiB | %s |%n",
        samples,
        policy,
        arm.median("seconds"),
        arm.spread("seconds", "%.2f"));
  }

  /** Plans an epoch at a memory of a tenth and prints the time. */
  static void plan(String layoutName, String policy) {
    if (layoutName.equals(DESCRIBED)) {
      plan(new MixingBenchmark.Layout(100_000_000, 6_000), policy);
      return;
    }
    try (Snapshot snapshot = Snapshot.open(Path.of(layoutName))) {
      plan(SampleLayout.of(snapshot), policy);
    }
  }

  private static void plan(SampleLayout layout, String policy) {
    long start = System.nanoTime();
    long memory = layout.sampleCount() * 6_000 / 10;
    PlanInputs inputs =
        PlanInputs.of(
            layout, 1, World.of(1), new PlanSettings(policy, 256, memory, 1 << 20, Tail.SHORT));
    PlanSteps lane = Policies.named(policy).plan(inputs, 0).lane(0, true);
    long delivered = 0;
    for (PlanStep step = lane.next(); step != null; step = lane.next()) {
      delivered += step instanceof PlanStep.Deliver ? 1 : 0;
    }
    if (delivered != layout.sampleCount()) {
      throw new IllegalStateException("delivered " + delivered);
    }
    System.out.printf(Locale.ROOT, "seconds=%.3f%n", (System.nanoTime() - start) / 1e9);
  }
}
