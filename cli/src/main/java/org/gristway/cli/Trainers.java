package org.gristway.cli;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.gristway.Progress;
import org.gristway.dataset.Workers;
import org.gristway.handover.Batch;
import org.gristway.plan.Shares;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;

/**
 * What stands in for training: a thread for each rank that takes batches and gives them back at
 * once. It notes which samples it was given and does nothing with their bytes, so what is measured
 * is how fast they come.
 */
final class Trainers implements AutoCloseable {

  private final Loader loader;
  private final LoaderOptions options;
  private final Shares shares;
  private final Deliveries deliveries;
  private final StepCollector<Given> steps;
  private final Progress progress;
  private final EpochEnds ends;
  private final List<Thread> threads = new ArrayList<>();

  /** Starts them. */
  Trainers(Loader loader, Deliveries deliveries, Progress progress) {
    this.loader = loader;
    this.options = loader.options();
    this.shares =
        new Shares(loader.dataset().size(), options.ranks(), options.batchSize(), options.tail());
    this.deliveries = deliveries;
    this.steps = new StepCollector<>(options.ranks(), deliveries);
    this.progress = progress;
    this.ends = new EpochEnds(options.ranks());
    for (int i = 0; i < options.ranks(); i++) {
      int rank = i;
      threads.add(Thread.ofPlatform().name("gristway-rank-" + i).daemon().start(() -> train(rank)));
    }
  }

  private void train(int rank) {
    try {
      OrderDigest digest = new OrderDigest();
      for (long epoch = 0; epoch < options.epochs(); epoch++) {
        for (Batch batch : loader.epoch(rank)) {
          take(batch, digest);
        }
        ends.reached(epoch, rank, digest.end());
      }
    } catch (Throwable thrown) {
      ends.failed(thrown);
    }
  }

  private void take(Batch batch, OrderDigest digest) throws IOException {
    Given given;
    long epoch = batch.epoch();
    long step = batch.step();
    long bytes = 0;
    try (batch) {
      given = Given.of(batch, shares);
      for (int i = 0; i < batch.size(); i++) {
        bytes += batch.length(i);
      }
    }
    given.addTo(digest);
    if (deliveries.wants(epoch)) {
      steps.add(epoch, step, given.rank(), given);
    }
    progress.advance(bytes);
  }

  /** Waits for the end of an epoch. Epochs are waited for in their order. */
  EpochEnds.End awaitEnd(long epoch) throws IOException {
    return ends.await(epoch);
  }

  /** Returns when no rank is being used any more. */
  @Override
  public void close() {
    threads.forEach(Thread::interrupt);
    Workers.join(threads);
  }
}
