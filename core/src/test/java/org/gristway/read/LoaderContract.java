package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.util.List;
import java.util.Random;
import org.gristway.Failure.Kind;
import org.gristway.plan.Tail;
import org.gristway.plan.policy.ChunkShufflePolicy;
import org.gristway.plan.policy.RedirectPolicy;
import org.gristway.plan.policy.RedirectPositionPolicy;
import org.gristway.plan.policy.SampleOrderPolicy;
import org.gristway.plan.policy.UnboundedPolicy;

/** What holds for every loader over a sound dataset: the invariants of the design, by number. */
final class LoaderContract {

  /** What a page-aligned read adds to an extent at the most. */
  private static final long PADDING = 8190;

  static final List<String> POLICIES =
      List.of(
          SampleOrderPolicy.NAME,
          ChunkShufflePolicy.NAME,
          RedirectPolicy.NAME,
          RedirectPositionPolicy.NAME,
          UnboundedPolicy.NAME);

  private final Originals originals;
  private final LoaderOptions options;
  private final Received received;

  private LoaderContract(Originals originals, LoaderOptions options) {
    this.originals = originals;
    this.options = options;
    this.received = new Received(originals);
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
        .withThreads(1 + random.nextInt(16));
  }

  /** Reads some epochs, the ranks one after the other, and checks all that must hold. */
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
        received.addEpoch(loader);
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
        assertThat(loader.memoryBytes()).isLessThanOrEqualTo(options.memory());
        assertThat(loader.counter(ReadCounter.RESIDENT_BYTES)).isZero();
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
      case UnboundedPolicy.NAME -> {
        long once = report.epoch() == 0 && epoch.batches(0) > 0 ? 1 : 0;
        assertThat(own)
            .as("read once ever")
            .isBetween(once * originals.bytes(), once * (originals.bytes() + PADDING * extents));
      }
      default -> {
        long pieces = extents + options.ranks() - 1; // those that straddle ranks are cut there
        assertThat(own)
            .as("invariant 4")
            .isBetween(report.bytes(), originals.bytes() + PADDING * pieces);
        assertThat(report.storageReads()).isLessThanOrEqualTo(pieces + epoch.repeats());
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
