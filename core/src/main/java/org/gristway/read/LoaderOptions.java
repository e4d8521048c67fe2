package org.gristway.read;

import java.time.Duration;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.plan.Caching;
import org.gristway.plan.Exchange;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;

/**
 * How to read a dataset.
 *
 * @param policy its name
 * @param memory bytes for what is read ahead, or kept, on this machine, shared by its ranks
 * @param batchSize samples that a rank gets at a step
 * @param seed of the order
 * @param extentBytes how much is read at once; 0 for what suits the memory
 * @param world the training processes of the job, and which of them are on this machine
 * @param tail what becomes of samples that do not fill a global batch
 * @param epochs to read; the last one is not read beyond
 * @param strict stop at the first damaged sample, in place of going on without it
 * @param maxDamage the share of an epoch's samples that may be damaged before the run ends; one
 *     sample may be, unless the share is 0
 * @param storageTimeout how long a read is tried again that a device or a mount has failed
 * @param threads that wait for the storage at once; the order does not depend on it
 * @param exchange how ranks mix what they read; if they do, they go through their steps together
 * @param cache what this machine has beside its memory to keep what was read
 * @param handover the most bytes that batches on their way take, on this machine, shared by its
 *     ranks; 0 for as much as {@code memory}, or less where less is free. The order does not depend
 *     on it
 */
public record LoaderOptions(
    String policy,
    long memory,
    int batchSize,
    long seed,
    long extentBytes,
    World world,
    Tail tail,
    long epochs,
    boolean strict,
    double maxDamage,
    Duration storageTimeout,
    int threads,
    Exchange exchange,
    Cache cache,
    long handover) {

  /** The same on every machine: a default taken from the machine would change the order. */
  public static final long DEFAULT_MEMORY = 2L << 30;

  public static final int DEFAULT_BATCH_SIZE = 256;

  /** Enough requests at once for any disk; those that a storage does not need wait idle. */
  public static final int DEFAULT_THREADS = 16;

  /** More than a few flipped bits: something is wrong with the storage, or with the copy. */
  public static final double DEFAULT_MAX_DAMAGE = 0.001;

  /** Longer than most fail-overs take, and shorter than the patience of who waits for training. */
  public static final Duration DEFAULT_STORAGE_TIMEOUT = Duration.ofSeconds(30);

  private static final Duration LONGEST_TIMEOUT = Duration.ofDays(1);

  private static final int MOST_RANKS = 4096;

  /** What holds where nothing else is asked for. */
  public static final LoaderOptions DEFAULT =
      new LoaderOptions(
          Policies.DEFAULT,
          DEFAULT_MEMORY,
          DEFAULT_BATCH_SIZE,
          0,
          0,
          World.of(1),
          Tail.SHORT,
          Long.MAX_VALUE,
          false,
          DEFAULT_MAX_DAMAGE,
          DEFAULT_STORAGE_TIMEOUT,
          DEFAULT_THREADS,
          Exchange.NONE,
          Cache.NONE,
          0);

  public LoaderOptions {
    if (world.ranksHere() > MOST_RANKS) {
      throw Failure.wrongCall(
          "there must be 1 to %d ranks on a machine, not %d", MOST_RANKS, world.ranksHere());
    }
    if (epochs < 0) {
      throw Failure.wrongCall("the number of epochs cannot be %d", epochs);
    }
    if (!(maxDamage >= 0 && maxDamage <= 1)) {
      throw Failure.wrongCall(
          "the share of samples that may be damaged is 0 to 1 (0.001 is one in a thousand), not %s",
          maxDamage);
    }
    if (storageTimeout.isNegative() || storageTimeout.compareTo(LONGEST_TIMEOUT) > 0) {
      throw Failure.wrongCall(
          "reads can be tried again for 0 to %d seconds, not %s",
          LONGEST_TIMEOUT.toSeconds(), storageTimeout.toSeconds());
    }
    if (threads < 1) {
      throw Failure.wrongCall("reading needs at least one thread");
    }
    if (memory < 1) {
      throw Failure.wrongCall("the memory must be more than %d bytes", memory);
    }
    if (handover < 0) {
      throw Failure.wrongCall("the handover cannot have %d bytes", handover);
    }
  }

  /** How many ranks are on this machine. */
  public int ranks() {
    return world.ranksHere();
  }

  /** What of this decides about plans. */
  public PlanSettings planSettings() {
    long perRank = memory / world.mostRanks();
    return new PlanSettings(
        policy,
        batchSize,
        perRank,
        extentBytes == 0 ? PlanSettings.autoExtent(perRank) : extentBytes,
        tail,
        caching(),
        exchange);
  }

  private Caching caching() {
    if (!Policies.named(policy).caches()) {
      return Caching.NONE;
    }
    int counted = Math.clamp(epochs, 1, Caching.MOST_EPOCHS);
    return new Caching(cache.disk() / world.mostRanks(), counted, Caching.Rates.USUAL);
  }

  /**
   * How many damaged samples a run goes on with in an epoch.
   *
   * @param samples of the epoch
   */
  long mostDamaged(long samples) {
    return strict || maxDamage == 0 ? 0 : Math.max(1, (long) (maxDamage * samples));
  }

  /** True if ranks deliver what others have read. */
  boolean isExchanging() {
    return exchange.share() > 0 && world.ranks() > 1;
  }

  public LoaderOptions withPolicy(String name) {
    return with(changed -> changed.policy = name);
  }

  public LoaderOptions withMemory(long bytes) {
    return with(changed -> changed.memory = bytes);
  }

  public LoaderOptions withBatchSize(int samples) {
    return with(changed -> changed.batchSize = samples);
  }

  public LoaderOptions withSeed(long value) {
    return with(changed -> changed.seed = value);
  }

  public LoaderOptions withExtentBytes(long bytes) {
    return with(changed -> changed.extentBytes = bytes);
  }

  /** So many ranks, all of them on this machine. */
  public LoaderOptions withRanks(int count) {
    if (count < 1) {
      throw Failure.wrongCall(
          "there must be 1 to %d ranks on a machine, not %d", MOST_RANKS, count);
    }
    return withWorld(World.of(count));
  }

  public LoaderOptions withWorld(World in) {
    return with(changed -> changed.world = in);
  }

  public LoaderOptions withTail(Tail value) {
    return with(changed -> changed.tail = value);
  }

  public LoaderOptions withEpochs(long count) {
    return with(changed -> changed.epochs = count);
  }

  public LoaderOptions withStrict(boolean value) {
    return with(changed -> changed.strict = value);
  }

  public LoaderOptions withMaxDamage(double share) {
    return with(changed -> changed.maxDamage = share);
  }

  public LoaderOptions withStorageTimeout(Duration value) {
    return with(changed -> changed.storageTimeout = value);
  }

  public LoaderOptions withThreads(int count) {
    return with(changed -> changed.threads = count);
  }

  public LoaderOptions withExchange(Exchange value) {
    return with(changed -> changed.exchange = value);
  }

  public LoaderOptions withCache(Cache value) {
    return with(changed -> changed.cache = value);
  }

  public LoaderOptions withHandover(long bytes) {
    return with(changed -> changed.handover = bytes);
  }

  private LoaderOptions with(Consumer<Changed> change) {
    Changed changed = new Changed();
    change.accept(changed);
    return changed.options();
  }

  /** These options, before they are made again with one of them changed. */
  private final class Changed {
    String policy = LoaderOptions.this.policy;
    long memory = LoaderOptions.this.memory;
    int batchSize = LoaderOptions.this.batchSize;
    long seed = LoaderOptions.this.seed;
    long extentBytes = LoaderOptions.this.extentBytes;
    World world = LoaderOptions.this.world;
    Tail tail = LoaderOptions.this.tail;
    long epochs = LoaderOptions.this.epochs;
    boolean strict = LoaderOptions.this.strict;
    double maxDamage = LoaderOptions.this.maxDamage;
    Duration storageTimeout = LoaderOptions.this.storageTimeout;
    int threads = LoaderOptions.this.threads;
    Exchange exchange = LoaderOptions.this.exchange;
    Cache cache = LoaderOptions.this.cache;
    long handover = LoaderOptions.this.handover;

    LoaderOptions options() {
      return new LoaderOptions(
          policy,
          memory,
          batchSize,
          seed,
          extentBytes,
          world,
          tail,
          epochs,
          strict,
          maxDamage,
          storageTimeout,
          threads,
          exchange,
          cache,
          handover);
    }
  }
}
