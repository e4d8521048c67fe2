package org.gristway.cli;

import java.nio.ByteBuffer;

/**
 * One way to give a trainer its data: a whole epoch, in batches. For one thread. Closing it ends
 * its reading, wherever that is.
 */
interface DemoFeed extends AutoCloseable {

  /** Some samples and their bytes, until the next batch is asked for. */
  interface Samples {
    int size();

    /** The id of a sample in the packed dataset. */
    long id(int place);

    ByteBuffer bytes(int place);
  }

  /**
   * What it took up to now.
   *
   * @param reads requests to the storage
   * @param readBytes that they read
   * @param peakBytes of memory, beside the batches on their way to the trainer
   */
  record Cost(long reads, long readBytes, long peakBytes) {}

  /** The next batch, once it is there. Not to be asked when the epoch is over. */
  Samples next();

  /** The memory it uses now, beside the batches on their way to the trainer. */
  long residentBytes();

  Cost cost();

  @Override
  void close();
}
