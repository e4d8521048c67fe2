package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.plan.policy.Policies;
import org.gristway.plan.policy.UnboundedPolicy;
import org.gristway.read.Beginning;
import org.gristway.read.Cache;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Reads as training does. */
@Command(
    name = "read",
    sortOptions = false,
    description = {
      "Reads a dataset as training does, and measures how fast it comes and how well it is"
          + " shuffled.",
      "Nothing is trained: every batch is given back at once. 'Waited' is the time for which a rank"
          + " had no batch, the mean over ranks. Damaged samples are named, the first ten of an"
          + " epoch, and then it exits with 1."
    },
    footer = {"", "Example: gristway read flowers.gw --memory 10%% --epochs 3"})
final class ReadCommand implements CliCommand {

  /** More than any storage makes use of. */
  private static final int MOST_THREADS = 4096;

  private final Console console;

  @Mixin private DatasetArgument dataset = new DatasetArgument();

  @Option(
      names = "--policy",
      paramLabel = "NAME",
      description =
          "How to read: sample-order, chunk-shuffle, redirect, redirect-position, clairvoyant,"
              + " clairvoyant-next-use, locality or unbounded (default: redirect).")
  private String policy = Policies.DEFAULT;

  @Mixin private ReadArguments arguments = new ReadArguments();

  @Option(
      names = "--epochs",
      paramLabel = "COUNT",
      description = "How often to read it all (default: 1).")
  private long epochs = 1;

  @Option(
      names = "--cache",
      paramLabel = "SIZE",
      converter = ByteSize.class,
      description =
          "Memory in which redirect and chunk-shuffle keep extents from epoch to epoch, beside"
              + " --memory (default: none).")
  private long cacheMemory;

  @Option(
      names = "--handover",
      paramLabel = "SIZE",
      converter = ByteSize.class,
      description =
          "The most memory that batches on their way take, shared by the ranks (default: as much as"
              + " --memory, but at least 64MiB, and at most half of what is left free).")
  private long handover;

  @Option(
      names = "--cache-disk",
      paramLabel = "SIZE",
      converter = ByteSize.class,
      description =
          "How much they keep on a disk beside that, and how many samples clairvoyant and"
              + " clairvoyant-next-use keep there (default: nothing).")
  private long cacheDisk;

  @Option(
      names = "--cache-folder",
      paramLabel = "DIR",
      description = "Where on that disk. Nothing is seen there, and nothing is left.")
  private @Nullable Path cacheFolder;

  @Option(names = "--strict", description = "Stop at the first damaged sample.")
  private boolean strict;

  @Option(
      names = "--max-damage",
      paramLabel = "SHARE",
      description =
          "Stop when more than this share of an epoch's samples is damaged; one may be, unless it is"
              + " 0 (default: 0.001).")
  private double maxDamage = LoaderOptions.DEFAULT_MAX_DAMAGE;

  @Option(
      names = "--storage-timeout",
      paramLabel = "SECONDS",
      description =
          "How many seconds to retry a read that the disk or the mount has failed (default: 30).")
  private long storageTimeout = LoaderOptions.DEFAULT_STORAGE_TIMEOUT.toSeconds();

  @Option(
      names = "--threads",
      paramLabel = "COUNT",
      description = "Reads at once; the order does not depend on it (default: 16).")
  private int threads = LoaderOptions.DEFAULT_THREADS;

  ReadCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    check();
    Progress progress = console.progress();
    long start = System.nanoTime();
    List<EpochResult> results = new ArrayList<>();
    try (Loader loader = open();
        OrderFile order = arguments.openOrder(loader.dataset().snapshot(), console)) {
      ReadSummary summary = new ReadSummary(console, loader, memory(loader));
      Deliveries deliveries = new Deliveries(loader, order);
      begin(progress, 0, loader);
      try (Trainers trainers = new Trainers(loader, deliveries, progress)) {
        long before = start;
        for (long epoch = 0; epoch < epochs; epoch++) {
          EpochEnds.End end = trainers.awaitEnd(epoch);
          deliveries.flush();
          EpochResult result = result(loader, epoch, end, before);
          results.add(result);
          before = end.at();
          // The next bar is not drawn for a moment, in which this one is taken away.
          begin(progress, epoch + 1, loader);
          console.endProgress();
          if (printsSummary()) {
            summary.epoch(result);
          }
        }
      }
      if (arguments.asJson()) {
        ReadJson.write(loader, memory(loader), results, deliveries.quality(), console.out());
      } else if (printsSummary()) {
        summary.end(results, deliveries.quality());
      }
    }
    console.flush(); // what is complained about stands below it
    return verdict(results);
  }

  private static EpochResult result(Loader loader, long epoch, EpochEnds.End end, long before) {
    return new EpochResult(
        loader.report(epoch), end.at() - before, loader.options().ranks(), end.orderDigest());
  }

  private void check() {
    arguments.check();
    if (epochs < 1) {
      throw arguments.wrong("--epochs must be 1 or more, not " + epochs);
    }
    if (cacheDisk > 0 != (cacheFolder != null)) {
      throw arguments.wrong("--cache-disk and --cache-folder go together");
    }
    if (threads < 1 || threads > MOST_THREADS) {
      throw arguments.wrong("--threads must be 1 to " + MOST_THREADS + ", not " + threads);
    }
  }

  private Loader open() {
    Dataset opened = Dataset.open(dataset.path());
    LoaderOptions options;
    try {
      options = options(opened.snapshot());
    } catch (RuntimeException wrong) {
      opened.close();
      throw wrong;
    }
    return Loader.open(opened, options, Beginning.NEW_RUN, console::complain);
  }

  private LoaderOptions options(Snapshot snapshot) {
    return LoaderOptions.DEFAULT
        .withPolicy(policy)
        .withMemory(arguments.memory(snapshot))
        .withBatchSize(arguments.batchSize())
        .withSeed(arguments.seed())
        .withExtentBytes(arguments.extent())
        .withRanks(arguments.ranks(1))
        .withTail(arguments.tail())
        .withEpochs(epochs)
        .withStrict(strict)
        .withMaxDamage(maxDamage)
        .withStorageTimeout(Duration.ofSeconds(storageTimeout))
        .withThreads(threads)
        .withHandover(handover)
        .withCache(new Cache(cacheMemory, cacheDisk, cacheFolder));
  }

  /** The budget; of the policy that knows none, what it takes. */
  private long memory(Loader loader) {
    return policy.equals(UnboundedPolicy.NAME) ? loader.memoryBytes() : loader.options().memory();
  }

  private void begin(Progress progress, long epoch, Loader loader) {
    if (epoch < epochs) {
      progress.begin(
          epochs == 1 ? "reading" : "epoch " + epoch,
          Progress.Unit.BYTES,
          loader.dataset().snapshot().dataBytes());
    }
  }

  private boolean printsSummary() {
    return !arguments.asJson() && !arguments.orderIsPrinted();
  }

  private int verdict(List<EpochResult> results) {
    long damaged = results.stream().mapToLong(result -> result.report().damaged()).sum();
    if (damaged == 0) {
      return DONE;
    }
    console.complain(
        String.format(
            "%s is damaged: repeats were given in %s; 'gristway verify %s' names all damage",
            dataset.path(), Text.count(damaged, "place"), dataset.inShell()));
    return DAMAGED;
  }
}
