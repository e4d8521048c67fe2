package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.gristway.Failure.Kind;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Tail;
import org.gristway.plan.policy.ClairvoyantNextUsePolicy;
import org.gristway.plan.policy.ClairvoyantPolicy;
import org.gristway.plan.policy.LocalityPolicy;
import org.gristway.plan.policy.Policies;
import org.gristway.plan.policy.RedirectPositionPolicy;
import org.gristway.plan.policy.SampleOrderPolicy;
import org.gristway.plan.policy.UnboundedPolicy;

/** What holds for every loader over a sound dataset: the invariants of the design, by number. */
final class LoaderContract {

  /** What a page-aligned read adds to an extent at the most. */
  private static final long PADDING = 8190;

  static final List<String> POLICIES = Policies.names();

  /** Those that keep samples from epoch to epoch. */
  static final List<String> CACHING = names(true);

  /** Those that do not. */
  static final List<String> NOT_CACHING = names(false);

  /** Nothing is found there: what is kept has no name. */
  private static final Path DISK = Path.of(System.getProperty("java.io.tmpdir"));

  private final Originals originals;
  private final LoaderOptions options;
  private final Received received;

  private LoaderContract(Originals originals, LoaderOptions options) {
    this.originals = originals;
    this.options = options;
    this.received = new Received(originals);
  }

  private static List<String> names(boolean caching) {
    return Policies.all().stream()
        .filter(policy -> policy.caches() == caching)
        .map(ReadPolicy::name)
        .toList();
  }

  /** Small extents, few frames and odd batches, so that little data shows much. */
  static LoaderOptions anyOptions(Random random, String policy, Tail tail, int ranks) {
    long extent = 4096L << random.nextInt(5);
    long memory = ranks * (extent * (2 + random.nextInt(40)) + random.nextInt(4096));
    return LoaderOptions.DEFAULT
        .withPolicy(policy)
        .withTail(tail)
        .withRanks(ranks)
        .withExtentBytes(extent)
        .withMemory(memory)
        .withBatchSize(1 + random.nextInt(40))
        .withSeed(random.nextLong())
        .withThreads(1 + random.nextInt(16))
        .withCache(anyCache(random, policy, memory));
  }

  private static Cache anyCache(Random random, String policy, long memory) {
    long disk = random.nextInt(3) * memory / 2;
    if (CACHING.contains(policy)) {
      return new Cache(0, disk, DISK);
    }
    boolean keepsExtents = Policies.named(policy).exchanges() && random.nextBoolean();
    return keepsExtents ? new Cache(random.nextInt(3) * memory, disk, DISK) : Cache.NONE;
  }

  /**
   * Reads some epochs and checks all that must hold. Ranks are read one after the other, since none
   * waits for another; unless they mix what they read.
   */
  static void assertKept(Originals originals, LoaderOptions options, int epochs) {
    LoaderContract contract = new LoaderContract(originals, options.withEpochs(epochs));
    try {
      contract.assertKept(epochs);
    } catch (AssertionError | RuntimeException failed) {
      throw new AssertionError(options + ": " + failed, failed);
    }
  }

  private void assertKept(int epochs) {
    try (Loader loader = Loader.open(originals.path(), options)) {
      for (int epoch = 0; epoch < epochs; epoch++) {
        if (options.exchange().share() > 0) {
          received.addSteps(loader, loader.steps(epoch));
        } else {
          received.addEpoch(loader);
        }
      }
      for (int rank = 0; rank < options.ranks(); rank++) {
        int each = rank;
        assertThat(loader.epoch(each)).isEmpty();
        assertFails(Kind.WRONG_CALL, () -> loader.next(each), "no more batches");
      }
      for (int epoch = 0; epoch < epochs; epoch++) {
        assertKept(loader, received.ofEpoch(epoch), loader.report(epoch));
      }
      if (!options.policy().equals(UnboundedPolicy.NAME)) {
        long cache = options.cache().memory();
        assertThat(loader.memoryBytes()).isLessThanOrEqualTo(options.memory() + cache);
        assertThat(loader.counter(ReadCounter.RESIDENT_BYTES))
            .isBetween(0L, CACHING.contains(options.policy()) ? options.memory() : cache);
      }
    }
  }

  private void assertKept(Loader loader, Received epoch, EpochReport report) {
    long missing = epoch.assertNoneTwice();
    long global = (long) options.batchSize() * options.ranks();
    if (options.tail() == Tail.DROP) {
      assertThat(missing).as("invariant 1").isEqualTo(originals.count() % global);
      assertThat(epoch.repeats()).as("invariant 1").isZero();
    } else {
      assertThat(missing).as("invariant 1").isZero();
    }
    for (int rank = 0; rank < options.ranks(); rank++) {
      assertThat(epoch.batches(rank)).as("invariant 2").isEqualTo(epoch.batches(0));
    }
    assertThat(epoch.inOrder())
        .as("invariant 3")
        .isEqualTo(Received.planned(originals, options, report.epoch()));
    assertThat(report.peakResidentBytes())
        .as("invariant 5")
        .isLessThanOrEqualTo(loader.memoryBytes());
    assertReads(loader, epoch, report);
    assertCounted(epoch, report);
  }

  /** Invariant 4, and its like for the policies that it is not about. */
  private void assertReads(Loader loader, Received epoch, EpochReport report) {
    long extents = loader.cuts().count();
    long own = report.storageBytes() - report.rereadBytes(); // without what only fills places
    switch (options.policy()) {
      case SampleOrderPolicy.NAME, RedirectPositionPolicy.NAME ->
          assertThat(own).isBetween(report.bytes(), report.bytes() + PADDING * report.samples());
      case ClairvoyantPolicy.NAME, ClairvoyantNextUsePolicy.NAME, LocalityPolicy.NAME -> {
        assertThat(own + report.fetchedBytes())
            .isBetween(report.bytes(), report.bytes() + PADDING * report.samples());
        assertThat(report.fetched() + report.storageReads())
            .isBetween(report.samples(), report.samples() + epoch.repeats());
        if (report.epoch() == 0) {
          assertThat(report.fetched() + report.fallBacks()).isZero();
        } else if (options.ranks() == 1) {
          assertThat(report.fallBacks()).as("its own are there").isZero();
        }
      }
      case UnboundedPolicy.NAME -> {
        long once = report.epoch() == 0 && epoch.batches(0) > 0 ? 1 : 0;
        assertThat(own)
            .as("read once ever")
            .isBetween(once * originals.bytes(), once * (originals.bytes() + PADDING * extents));
      }
      default -> {
        long pieces = extents + options.ranks() - 1; // those that straddle ranks are cut there
        // What is fetched counts, be it only to fill a place.
        long fetchedAgain =
            options.cache().memory() == 0 ? 0 : epoch.repeats() * (originals.longest() + PADDING);
        assertThat(own + report.fetchedBytes())
            .as("invariant 4")
            .isBetween(report.bytes(), originals.bytes() + PADDING * pieces + fetchedAgain);
        assertThat(report.storageReads() + report.fetched())
            .isLessThanOrEqualTo(pieces + epoch.repeats());
        assertThat(report.fallBacks()).isZero();
      }
    }
  }

  private void assertCounted(Received epoch, EpochReport report) {
    List<Received.Place> fresh = epoch.places().stream().filter(each -> !each.repeat()).toList();
    assertThat(report.samples()).isEqualTo(fresh.size());
    assertThat(report.bytes())
        .isEqualTo(fresh.stream().mapToLong(each -> originals.length(each.sample())).sum());
    assertThat(report.repeated()).isEqualTo(epoch.repeats());
    assertThat(report.damaged()).isZero();
    assertThat(report.redirected())
        .isEqualTo(fresh.stream().filter(each -> each.sample() != each.request()).count());
  }
}
