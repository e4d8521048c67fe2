package org.gristway.cli;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gristway.Progress;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlannedOrder;
import org.gristway.plan.Quality;
import org.gristway.plan.ReadPlan;
import org.jspecify.annotations.Nullable;

/**
 * What an epoch would do, found by going through its plan.
 *
 * @param frames of a node
 * @param samples that are delivered, repeats not counted
 * @param peakResidentBytes the most memory of frames in use at once, on all nodes
 * @param orderDigest the one that {@code read} gives for the same inputs
 */
record PlannedEpoch(
    long steps,
    int frames,
    long samples,
    long storageReads,
    long storageBytes,
    long peakResidentBytes,
    long redirected,
    Quality.Report quality,
    String orderDigest) {

  /** Goes through a plan. */
  static PlannedEpoch of(ReadPlan plan, @Nullable OrderFile order, Progress progress)
      throws IOException {
    PlannedOrder planned = new PlannedOrder(plan, plan.epoch() == 0);
    Quality quality = new Quality(plan.inputs().cuts());
    List<OrderDigest> digests = new ArrayList<>();
    for (int rank = 0; rank < plan.inputs().world().ranks(); rank++) {
      digests.add(new OrderDigest());
    }
    long samples = 0;
    long redirected = 0;
    for (Deliver[][] step = planned.next(); step != null; step = planned.next()) {
      long[][] ofRanks = new long[step.length][];
      for (int rank = 0; rank < step.length; rank++) {
        redirected += add(step[rank], plan.epoch(), digests.get(rank), order);
        ofRanks[rank] = fresh(step[rank]);
        samples += ofRanks[rank].length;
        progress.advance(ofRanks[rank].length);
      }
      quality.add(ofRanks);
    }
    return new PlannedEpoch(
        plan.steps(),
        plan.frames(),
        samples,
        planned.reads(),
        planned.bytes(),
        planned.peakResidentBytes(),
        redirected,
        quality.report(),
        OrderDigest.of(digests.stream().map(OrderDigest::end).toList()));
  }

  /** Notes a batch; how many of its samples are not the requested ones. */
  private static long add(
      Deliver[] batch, long epoch, OrderDigest digest, @Nullable OrderFile order)
      throws IOException {
    long redirected = 0;
    digest.batch(batch.length);
    for (Deliver place : batch) {
      digest.place(place.sample(), place.repeat());
      redirected += place.repeat() || place.sample() == place.request() ? 0 : 1;
      if (order != null) {
        order.write(epoch, place.step(), place.rank(), place.request(), place.sample());
      }
    }
    return redirected;
  }

  private static long[] fresh(Deliver[] batch) {
    return Arrays.stream(batch)
        .filter(place -> !place.repeat())
        .mapToLong(Deliver::sample)
        .toArray();
  }
}
