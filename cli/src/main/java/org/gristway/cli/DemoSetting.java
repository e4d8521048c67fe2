package org.gristway.cli;

import java.nio.file.Path;

/**
 * How the demo's three ways of reading were compared.
 *
 * @param dataset that the files are packed into
 * @param memory bytes that reading the dataset may use, beside the batches
 * @param extentBytes what is read at once
 * @param trainerRate samples a second that the trainer takes if it never waits
 * @param trainerShare what part of the stream rate that is
 * @param streamRate bytes a second that the storage gave when the dataset was verified
 * @param cold how it was made sure that everything comes from the storage
 * @param fileSystem its type
 * @param inMemory whether the files are on no disk at all
 */
record DemoSetting(
    Path dataset,
    long memory,
    long extentBytes,
    long trainerRate,
    double trainerShare,
    long streamRate,
    DemoCold.Way cold,
    String fileSystem,
    boolean inMemory) {

  /** What a batch keeps the trainer busy. */
  long stepNanos() {
    return DemoTrainer.BATCH_SIZE * 1_000_000_000L / trainerRate;
  }
}
