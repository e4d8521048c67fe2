package org.gristway.pack;

import java.nio.file.Path;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * How to pack.
 *
 * @param chunkSize bytes of a full chunk's file; a sample larger than that gets a chunk of its own
 * @param seed of the random order in which samples are laid out
 * @param keepOrder lay samples out in source order instead
 * @param stemParts in folders and zips too, files that share their path up to the name's first dot
 *     are the parts of one sample, as in tars
 * @param labels where labels come from
 * @param classesOf the dataset whose class numbers are used for the folders here too; null if they
 *     are numbered in the order of their names
 * @param skipUnreadable leave out what cannot be read, instead of publishing nothing
 * @param force replace the dataset that is there
 * @param threads that read and write at once; what is written does not depend on it
 */
public record PackOptions(
    long chunkSize,
    long seed,
    boolean keepOrder,
    boolean stemParts,
    Labels labels,
    @Nullable Path classesOf,
    boolean skipUnreadable,
    boolean force,
    int threads) {

  /** 64 MiB: large enough for any storage to stream, small enough to copy and replace one. */
  public static final long DEFAULT_CHUNK_SIZE = 64 << 20;

  /** Each waits for one small file at a time; those a fast storage does not need stay idle. */
  public static final int DEFAULT_THREADS = 32;

  private static final long MIN_CHUNK_SIZE = 64 << 10;
  private static final long MAX_CHUNK_SIZE = 1 << 30;

  /** What holds where nothing else is asked for. */
  public static final PackOptions DEFAULT =
      new PackOptions(
          DEFAULT_CHUNK_SIZE, 0, false, false, Labels.USUAL, null, false, false, DEFAULT_THREADS);

  public PackOptions {
    if (chunkSize < MIN_CHUNK_SIZE || chunkSize > MAX_CHUNK_SIZE) {
      throw Failure.wrongCall("the chunk size must be between 64KiB and 1GiB");
    }
    if (threads < 1) {
      throw Failure.wrongCall("packing needs at least one thread");
    }
    if (classesOf != null && labels == Labels.NONE) {
      throw Failure.wrongCall("without labels there are no classes to take from %s", classesOf);
    }
  }

  public PackOptions withChunkSize(long size) {
    return new PackOptions(
        size, seed, keepOrder, stemParts, labels, classesOf, skipUnreadable, force, threads);
  }

  public PackOptions withSeed(long value) {
    return new PackOptions(
        chunkSize, value, keepOrder, stemParts, labels, classesOf, skipUnreadable, force, threads);
  }

  public PackOptions withKeepOrder(boolean value) {
    return new PackOptions(
        chunkSize, seed, value, stemParts, labels, classesOf, skipUnreadable, force, threads);
  }

  public PackOptions withStemParts(boolean value) {
    return new PackOptions(
        chunkSize, seed, keepOrder, value, labels, classesOf, skipUnreadable, force, threads);
  }

  public PackOptions withLabels(Labels value) {
    return new PackOptions(
        chunkSize, seed, keepOrder, stemParts, value, classesOf, skipUnreadable, force, threads);
  }

  public PackOptions withClassesOf(@Nullable Path dataset) {
    return new PackOptions(
        chunkSize, seed, keepOrder, stemParts, labels, dataset, skipUnreadable, force, threads);
  }

  public PackOptions withSkipUnreadable(boolean value) {
    return new PackOptions(
        chunkSize, seed, keepOrder, stemParts, labels, classesOf, value, force, threads);
  }

  public PackOptions withForce(boolean value) {
    return new PackOptions(
        chunkSize, seed, keepOrder, stemParts, labels, classesOf, skipUnreadable, value, threads);
  }

  public PackOptions withThreads(int count) {
    return new PackOptions(
        chunkSize, seed, keepOrder, stemParts, labels, classesOf, skipUnreadable, force, count);
  }
}
