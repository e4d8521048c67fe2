package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Random;
import org.gristway.plan.Exchange;
import org.gristway.plan.ReadState;
import org.gristway.plan.Tail;
import org.gristway.plan.policy.ChunkShufflePolicy;
import org.gristway.plan.policy.RedirectPolicy;
import org.gristway.read.LoaderOptions;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whole jobs of several nodes in virtual time, in which everything is drawn from a seed: the world,
 * the plan, who runs when, how long messages take, and what goes wrong.
 */
@Tag("java")
class JobSimulationTest {

  @TempDir static Path folder;
  private static Originals originals;

  @BeforeAll
  static void pack() {
    originals = Originals.in(folder);
  }

  @AfterAll
  static void close() {
    originals.close();
  }

  @Test
  void whatever_happens_each_sample_comes_once_or_every_rank_fails_in_time() {
    long first = Seeds.of("JobSimulationTest");
    for (int i = 0; i < Thorough.count(40, 1000); i++) {
      simulate(first + i);
    }
  }

  @Test
  void a_seed_gives_the_same_course_of_things_each_time() {
    long first = Seeds.of("a_seed_gives_the_same");
    for (int i = 0; i < Thorough.count(4, 50); i++) {
      long digest = simulate(first + i);
      assertThat(simulate(first + i)).as("seed %d", first + i).isEqualTo(digest);
    }
  }

  /** Runs the job of a seed, and what is left of it in another world; all that has happened. */
  private static long simulate(long seed) {
    Random random = new Random(seed);
    int nodes = 3 + random.nextInt(14);
    int ranks = nodes + random.nextInt(nodes + 1);
    Trouble trouble = Trouble.values()[random.nextInt(Trouble.values().length)];
    LoaderOptions options = options(random, nodes, ranks, trouble.isFatal());
    try {
      return simulate(nodes, ranks, options, trouble, random);
    } catch (AssertionError | RuntimeException failed) {
      throw new AssertionError(
          "seed %d, %d ranks on %d nodes, %s, %s (again: ./build -pl node -am -Dtest=%s -Dgristway.seed=%d verify): %s"
              .formatted(
                  seed,
                  ranks,
                  nodes,
                  trouble,
                  options,
                  JobSimulationTest.class.getSimpleName(),
                  seed,
                  failed.getMessage()),
          failed);
    }
  }

  private static LoaderOptions options(Random random, int nodes, int ranks, boolean isResumed) {
    double[] shares = {0.1, 0.5, 1};
    // What is dropped at the end of a segment comes in the next.
    Tail[] tails = isResumed ? new Tail[] {Tail.SHORT, Tail.PAD} : Tail.values();
    long extent = 4096L << random.nextInt(2);
    return LoaderOptions.DEFAULT
        .withPolicy(random.nextBoolean() ? RedirectPolicy.NAME : ChunkShufflePolicy.NAME)
        .withExchange(new Exchange(shares[random.nextInt(3)], 1 + random.nextInt(4)))
        .withTail(tails[random.nextInt(tails.length)])
        .withExtentBytes(extent)
        .withMemory((long) ((ranks + nodes - 1) / nodes) * extent * (2 + random.nextInt(20)))
        .withBatchSize(1 + random.nextInt(8))
        .withSeed(random.nextInt(1000))
        .withEpochs(1 + random.nextInt(2))
        .withThreads(1 + random.nextInt(3));
  }

  private static long simulate(
      int nodes, int ranks, LoaderOptions options, Trouble trouble, Random random) {
    int[][] times = new int[(int) options.epochs()][Originals.SAMPLES];
    long digest;
    ReadState state = null;
    try (SimulatedJob job =
        new SimulatedJob(originals, options, nodes, ranks, null, trouble, random)) {
      job.run();
      job.count(times);
      digest = job.digest();
      assertThat(job.isComplete() || trouble.isFatal()).as("all is delivered").isTrue();
      if (!job.isComplete()) {
        state = ReadState.parse(job.state().toString());
      }
    }
    if (state != null) {
      int nodesLeft = 1 + random.nextInt(nodes);
      int ranksLeft = nodesLeft + random.nextInt(nodesLeft + 1);
      LoaderOptions rest =
          options(random, nodesLeft, ranksLeft, true)
              .withSeed(options.seed())
              .withEpochs(options.epochs());
      try (SimulatedJob job =
          new SimulatedJob(originals, rest, nodesLeft, ranksLeft, state, Trouble.NONE, random)) {
        job.run();
        job.count(times);
        digest = 31 * digest + job.digest();
        assertThat(job.isComplete()).as("all that was left is delivered").isTrue();
      }
    }
    assertOnce(times, options, ranks);
    return digest;
  }

  private static void assertOnce(int[][] times, LoaderOptions options, int ranks) {
    long dropped =
        options.tail() == Tail.DROP ? Originals.SAMPLES % ((long) options.batchSize() * ranks) : 0;
    for (int[] epoch : times) {
      long missing = 0;
      for (int each : epoch) {
        assertThat(each).as("how often a sample has come").isLessThanOrEqualTo(1);
        missing += 1 - each;
      }
      assertThat(missing).as("samples that have not come").isEqualTo(dropped);
    }
  }
}
