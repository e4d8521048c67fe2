package org.gristway.cli;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Iterator;
import org.gristway.handover.Batch;
import org.gristway.read.EpochReport;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;
import org.gristway.read.ReadCounter;

/** The packed dataset, read by one of the policies. */
final class DemoLoaderFeed implements DemoFeed {

  private record LoadedBatch(Batch batch) implements Samples {
    @Override
    public int size() {
      return batch.size();
    }

    @Override
    public long id(int place) {
      return batch.sample(place);
    }

    @Override
    public ByteBuffer bytes(int place) {
      return batch.data(place).asByteBuffer();
    }
  }

  private final Loader loader;
  private final Iterator<Batch> batches;

  DemoLoaderFeed(Path dataset, LoaderOptions options) {
    this.loader = Loader.open(dataset, options);
    this.batches = loader.epoch().iterator();
  }

  @Override
  public Samples next() {
    return new LoadedBatch(batches.next());
  }

  @Override
  public long residentBytes() {
    return loader.counter(ReadCounter.RESIDENT_BYTES);
  }

  @Override
  public Cost cost() {
    EpochReport report = loader.report(0);
    return new Cost(report.storageReads(), report.storageBytes(), report.peakResidentBytes());
  }

  @Override
  public void close() {
    loader.close();
  }
}
