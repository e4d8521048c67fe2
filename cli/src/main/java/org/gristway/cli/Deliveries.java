package org.gristway.cli;

import java.io.IOException;
import java.util.List;
import org.gristway.plan.Quality;
import org.gristway.read.Loader;
import org.jspecify.annotations.Nullable;

/**
 * What is made of the steps of a run: lines of the order, where they are asked for, and the quality
 * of the last epoch.
 */
final class Deliveries implements StepCollector.Sink<Given> {

  private final long lastEpoch;
  private final Quality quality;
  private final @Nullable OrderFile order;

  Deliveries(Loader loader, @Nullable OrderFile order) {
    this.lastEpoch = loader.options().epochs() - 1;
    this.quality = new Quality(loader.cuts());
    this.order = order;
  }

  /** True if the steps of an epoch are of any use here. */
  boolean wants(long epoch) {
    return order != null || epoch == lastEpoch;
  }

  @Override
  public void step(long epoch, long step, List<Given> ofRanks) throws IOException {
    if (order != null) {
      for (Given given : ofRanks) {
        for (int i = 0; i < given.places(); i++) {
          order.write(epoch, step, given.rank(), given.request(i), given.sample(i));
        }
      }
    }
    if (epoch == lastEpoch) {
      quality.add(ofRanks.stream().map(Given::fresh).toArray(long[][]::new));
    }
  }

  /** Makes sure that the order is written up to here. */
  void flush() throws IOException {
    if (order != null) {
      order.flush();
    }
  }

  /** Of the last epoch, once it has ended. */
  Quality.Report quality() {
    return quality.report();
  }
}
