package org.gristway.cli;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import org.gristway.Progress;
import org.gristway.handover.Handover;
import org.gristway.plan.Exchange;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.ChunkShufflePolicy;
import org.gristway.plan.policy.Policies;
import org.gristway.plan.policy.RedirectPolicy;
import org.gristway.plan.policy.SampleOrderPolicy;
import org.gristway.plan.policy.UnboundedPolicy;
import org.gristway.simulator.CostModel;
import org.gristway.simulator.CostModel.Work;
import org.gristway.simulator.Described;
import org.gristway.simulator.Scenario;
import org.gristway.simulator.Simulated;
import org.gristway.simulator.Simulation;

/**
 * Finds settings with which a trainer does not wait for data, in the least memory. They are tried
 * in virtual time, with what a probe has measured of the storage.
 *
 * <p>An order that is not a full shuffle is only taken if it mixes well enough, as long as there is
 * another. A large dataset is tried in part: what a trainer waits for is decided by how fast
 * samples are wanted and given, and not by how long that goes on.
 */
final class Recommender {

  /**
   * Of the dataset in the memory of all nodes, for orders that are drawn from memory: networks that
   * were trained with it were as accurate as with a full shuffle (docs/convergence.md).
   */
  static final double ENOUGH_TO_MIX = 0.05;

  /** Of an epoch: whoever waits no longer does not wait. */
  static final double NO_STALL = 0.01;

  /** Stalls are no nearer to the truth than this. */
  private static final double SAME_STALL = 0.01;

  /** Of a rank. More comes in powers of two. */
  private static final long LEAST_MEMORY = 4 << 20;

  /** The first epoch begins with nothing, and the last one loads nothing for another. */
  private static final int EPOCHS = 3;

  private static final int STEADY_EPOCH = 1;

  /** So many are tried, and a few more. Where extents are read, they must be many extents. */
  private static final long SAMPLES = 200_000;

  private static final double ENOUGH_BYTES = 1.4e9;

  /** Of small samples, some are taken for one; but a batch is not taken for one. */
  private static final int FEWEST_IN_BATCH = 4;

  private static final long FEWEST_STEPS = 100;

  /** From so many frames on, more of them make reading no smoother. */
  private static final long FRAMES_TO_READ = 128;

  /** Of what is tried, at most: with more in memory, much of the reading is done at the turn. */
  private static final double LITTLE = 0.1;

  /** Those that can be carried out and are worth it, the one that mixes best first. */
  static final List<String> POLICIES =
      List.of(
          SampleOrderPolicy.NAME,
          UnboundedPolicy.NAME,
          RedirectPolicy.NAME,
          ChunkShufflePolicy.NAME);

  /**
   * What is asked for.
   *
   * @param policy the only one to look at, or empty
   * @param memory of a node, at most
   * @param extents sizes to try; of them {@link ExtentSize#AUTO} is what suits the memory
   * @param seed of the order
   * @param cost of the machines and the trainer
   */
  record Asked(
      Optional<String> policy,
      SampleLayout layout,
      long datasetBytes,
      int batchSize,
      World world,
      long memory,
      List<Long> extents,
      long seed,
      CostModel cost) {

    int ranksPerNode() {
      return world.mostRanks();
    }

    double stepSeconds() {
      return cost.work().computeSeconds();
    }

    double meanBytes() {
      return Math.max(1, (double) datasetBytes / Math.max(1, layout.sampleCount()));
    }

    /** Samples a second that the ranks of a node take. */
    double samplesWanted() {
      return ranksPerNode() * batchSize / stepSeconds();
    }

    /** Bytes a second that the ranks of a node take. */
    double bytesWanted() {
      return samplesWanted() * meanBytes();
    }
  }

  private final Asked asked;
  private final int together; // samples of the dataset that are taken for one
  private final Trial bySample;
  private final Trial byExtent;
  private final Progress progress;
  private final List<Candidate> candidates = new ArrayList<>();

  Recommender(Asked asked, Progress progress) {
    this.asked = asked;
    this.together = together(asked);
    long steps = FEWEST_STEPS * asked.world().ranks() * asked.batchSize();
    SampleLayout few = Excerpt.of(asked.layout(), Math.max(SAMPLES, steps));
    SampleLayout more = Excerpt.of(asked.layout(), Math.max(together * SAMPLES, steps));
    this.bySample = new Trial(few, few.sampleCount(), asked.batchSize(), asked.cost());
    this.byExtent = together == 1 ? bySample : coarse(more);
    this.progress = progress;
  }

  /**
   * What settings are tried with.
   *
   * @param samples of the dataset
   * @param batchSize and the cost of a step, if several samples are taken for one
   */
  private record Trial(SampleLayout layout, long samples, int batchSize, CostModel cost) {}

  private static int together(Asked asked) {
    long most = Math.max(1, Integer.highestOneBit(asked.batchSize()) / FEWEST_IN_BATCH);
    long wanted = (long) (ENOUGH_BYTES / SAMPLES / asked.meanBytes());
    long samples = asked.layout().sampleCount();
    long possible = samples / ((long) FEWEST_IN_BATCH * asked.world().ranks());
    long some = samples <= SAMPLES ? 1 : Math.min(wanted, Math.min(most, possible));
    return (int) Math.max(1, Long.highestOneBit(Math.max(1, some)));
  }

  private Trial coarse(SampleLayout layout) {
    int batch = asked.batchSize() / together;
    Work work = asked.cost().work();
    double seconds = work.computeSeconds() * batch * together / asked.batchSize();
    CostModel cost = asked.cost();
    return new Trial(
        new CoarseLayout(layout, together),
        layout.sampleCount(),
        batch,
        new CostModel(
            cost.storage(),
            cost.network(),
            cost.memoryRate(),
            cost.sampleSeconds() * together,
            cost.diskRate(),
            cost.processors(),
            new Work(work.preparationRate(), work.computeRate(), seconds, work.barrier())));
  }

  /** With how many samples settings are tried that read extents; the others with no more. */
  long samplesTried() {
    return byExtent.samples();
  }

  /**
   * The best settings and the second best; empty if the memory is too small for any.
   *
   * <p>Of those that remove the stall, those that mix well enough come first, and of these the
   * least memory; if none does, the most memory, since that mixes best. In the same memory a full
   * shuffle comes first, then smaller extents, of which fewer samples meet again.
   */
  List<Candidate> recommend() {
    for (String policy : POLICIES) {
      boolean isLastResort = policy.equals(ChunkShufflePolicy.NAME) && asked.policy().isEmpty();
      if (asked.policy().orElse(policy).equals(policy)
          && !(isLastResort && candidates.stream().anyMatch(Candidate::removesStall))) {
        tryOut(policy);
      }
    }
    if (candidates.isEmpty()) {
      return List.of();
    }
    candidates.sort(BEST_FIRST);
    Candidate best = candidates.getFirst();
    return runnerUp(best).map(second -> List.of(best, second)).orElse(List.of(best));
  }

  private static final Comparator<Candidate> BEST_FIRST =
      Comparator.<Candidate>comparingLong(each -> each.removesStall() ? 0 : 1)
          .thenComparing(
              each -> each.removesStall() ? 0 : Math.round(each.stallShare() / SAME_STALL))
          .thenComparing(each -> each.mixes() ? 0 : 1)
          .thenComparing(each -> each.mixes() ? each.memory() : -each.memory())
          .thenComparing(each -> POLICIES.indexOf(each.policy()))
          .thenComparing(Candidate::extentBytes);

  /**
   * What one may want in place of the best: a full shuffle, if that is none; less memory, if all
   * was given to mixing; another policy otherwise.
   */
  private Optional<Candidate> runnerUp(Candidate best) {
    Optional<Candidate> second = Optional.empty();
    if (best.removesStall() && !best.isFullShuffle()) {
      second = first(each -> each.removesStall() && each.isFullShuffle());
    }
    if (second.isEmpty() && best.removesStall() && !best.mixes()) {
      second =
          candidates.stream()
              .filter(each -> each.removesStall() && each.memory() < best.memory())
              .min(Comparator.comparingLong(Candidate::memory));
    }
    return second
        .or(() -> first(each -> !each.policy().equals(best.policy())))
        .or(() -> first(each -> !each.equals(best)));
  }

  private Optional<Candidate> first(Predicate<Candidate> wanted) {
    return candidates.stream().filter(wanted).findFirst();
  }

  private void tryOut(String policy) {
    List<Long> sizes = new ArrayList<>();
    for (long extent : asked.extents()) {
      if (policy.equals(UnboundedPolicy.NAME)) {
        long size = extent == ExtentSize.AUTO ? autoExtent(asked.memory()) : extent;
        long needed = plan(policy, asked.memory(), size).residentBytes();
        if (needed <= asked.memory() && !sizes.contains(size)) {
          sizes.add(size);
          tryOut(policy, needed, size).ifPresent(candidates::add);
        }
      } else {
        tryMemories(policy, extent);
      }
    }
  }

  /** Tries more and more memory, until that is enough, or does not help. */
  private void tryMemories(String policy, long extent) {
    boolean enoughToRead = false;
    double stallBefore = Double.POSITIVE_INFINITY;
    for (long memory : memories()) {
      boolean isAll = memory == asked.memory();
      long size = extent == ExtentSize.AUTO ? autoExtent(memory) : extent;
      boolean mixes = Candidate.mixes(policy, share(memory));
      if (enoughToRead && !mixes && !isAll || isTried(policy, memory, size)) {
        continue;
      }
      Optional<Candidate> candidate = tryOut(policy, memory, size);
      if (candidate.isEmpty()) {
        continue;
      }
      candidates.add(candidate.get());
      enoughToRead |= candidate.get().removesStall();
      double stall = candidate.get().stallShare();
      boolean helps =
          stall < stallBefore - SAME_STALL || framesOfRank(memory, size) < FRAMES_TO_READ;
      if (enoughToRead && mixes || !enoughToRead && !helps) {
        return;
      }
      stallBefore = stall;
    }
  }

  private boolean isTried(String policy, long memory, long extent) {
    return candidates.stream()
        .anyMatch(
            each ->
                each.policy().equals(policy)
                    && each.memory() == memory
                    && each.extentBytes() == extent);
  }

  private List<Long> memories() {
    List<Long> memories = new ArrayList<>();
    long least = LEAST_MEMORY * asked.ranksPerNode();
    for (long memory = 2 * Long.highestOneBit(least - 1);
        memory > 0 && memory < asked.memory();
        memory *= 2) {
      memories.add(memory);
    }
    memories.add(asked.memory());
    return memories;
  }

  private long autoExtent(long memory) {
    return PlanSettings.autoExtent(memory / asked.ranksPerNode());
  }

  private long framesOfRank(long memory, long extent) {
    return memory / asked.ranksPerNode() / extent;
  }

  private double share(long memory) {
    return (double) memory * asked.world().nodes() / Math.max(1, asked.datasetBytes());
  }

  /** Runs settings in virtual time; empty if the memory is too small for them. */
  private Optional<Candidate> tryOut(String policy, long memory, long extent) {
    Trial trial = policy.equals(SampleOrderPolicy.NAME) ? bySample : byExtent;
    // What holds the whole dataset is known to have the memory; neighbours that are taken for one
    // may need a little more.
    long triedMemory =
        policy.equals(UnboundedPolicy.NAME)
            ? Long.MAX_VALUE >> 8
            : Candidate.isDrawn(policy) ? triedMemory(memory, extent) : memory;
    Scenario scenario =
        new Scenario(
            policy,
            "",
            new Described(
                trial.layout().sampleCount(), Described.Kind.FIXED, asked.meanBytes(), 0, 1),
            EPOCHS,
            trial.batchSize(),
            asked.world().nodes(),
            asked.ranksPerNode(),
            asked.world().nodes(),
            triedMemory,
            0,
            extent,
            Handover.AREAS_AHEAD,
            Exchange.NONE,
            asked.seed(),
            trial.cost(),
            List.of(new Scenario.Tried(policy, triedMemory, Handover.AREAS_AHEAD)));
    Simulated result = new Simulation(scenario, trial.layout(), progress).run().getFirst();
    if (!result.ran()) {
      return Optional.empty();
    }
    return Optional.of(
        new Candidate(
            policy,
            memory,
            extent,
            share(memory),
            waited(result, STEADY_EPOCH, trial) / result.epochSeconds().get(STEADY_EPOCH),
            waited(result, 0, trial) * asked.layout().sampleCount() / trial.samples()));
  }

  /** The same part of what is tried as of the whole, but not so little that reading suffers. */
  private long triedMemory(long memory, long extent) {
    double part = (double) byExtent.samples() / asked.layout().sampleCount();
    long frames = framesOfRank(memory, extent);
    long few = (long) (LITTLE * part * asked.datasetBytes() / asked.world().ranks() / extent);
    long kept = Math.max((long) (frames * part), Math.min(frames, Math.min(few, FRAMES_TO_READ)));
    return Math.max(Math.min(2, frames), kept) * extent * asked.ranksPerNode();
  }

  /** What an epoch takes beyond training. */
  private double waited(Simulated result, int epoch, Trial trial) {
    long globalBatch = (long) asked.world().ranks() * trial.batchSize();
    long steps = Math.ceilDiv(trial.layout().sampleCount(), globalBatch);
    double training = steps * trial.cost().work().computeSeconds();
    return Math.max(0, result.epochSeconds().get(epoch) - training);
  }

  /** What an epoch of a candidate does to the whole dataset, once the first is over. */
  ReadPlan plan(Candidate candidate) {
    return plan(candidate.policy(), candidate.memory(), candidate.extentBytes());
  }

  private ReadPlan plan(String policy, long memory, long extent) {
    PlanSettings settings =
        new PlanSettings(
            policy, asked.batchSize(), memory / asked.ranksPerNode(), extent, Tail.SHORT);
    PlanInputs inputs = PlanInputs.of(asked.layout(), asked.seed(), asked.world(), settings);
    return Policies.named(policy).plan(inputs, STEADY_EPOCH);
  }
}
