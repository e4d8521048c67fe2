package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.LongPredicate;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlannedOrder;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.policy.Policies;

/** What came out of a loader. Each place is held against the dataset when it is received. */
final class Received {

  /** A place of a batch. */
  record Place(
      long epoch,
      long step,
      int rank,
      int position,
      long request,
      long planned,
      long sample,
      boolean repeat,
      boolean damaged) {

    /** What is due here, whatever has come: nothing that happens may change it. */
    Place due() {
      return new Place(epoch, step, rank, position, request, planned, planned, false, false);
    }
  }

  private final Originals originals;
  private final List<Place> places = new ArrayList<>();

  Received(Originals originals) {
    this.originals = originals;
  }

  /** Adds a batch and closes it. */
  Received add(Batch batch) {
    try (batch) {
      for (int i = 0; i < batch.size(); i++) {
        originals.assertOwn(batch, i);
        places.add(
            new Place(
                batch.epoch(),
                batch.step(),
                batch.rank(),
                i,
                batch.request(i),
                batch.planned(i),
                batch.sample(i),
                batch.isRepeat(i),
                batch.isDamaged(i)));
      }
    }
    return this;
  }

  /** Adds all that is left of the current epoch of every rank, rank by rank. */
  Received addEpoch(Loader loader) {
    for (int rank = 0; rank < loader.options().ranks(); rank++) {
      for (Batch batch : loader.epoch(rank)) {
        add(batch);
      }
    }
    return this;
  }

  /** Adds the next batches of every rank, the ranks in turn. */
  Received addSteps(Loader loader, long steps) {
    for (long i = 0; i < steps; i++) {
      for (int rank = 0; rank < loader.options().ranks(); rank++) {
        add(loader.next(rank));
      }
    }
    return this;
  }

  /** In the order of arrival. */
  List<Place> places() {
    return places;
  }

  /** In the order of training: ranks step by step. */
  List<Place> inOrder() {
    List<Place> sorted = new ArrayList<>(places);
    sorted.sort(
        Comparator.comparingLong(Place::epoch)
            .thenComparingLong(Place::step)
            .thenComparingInt(Place::rank)
            .thenComparingInt(Place::position));
    return sorted;
  }

  /** What was due in each place, in the order of training. */
  List<Place> due() {
    return inOrder().stream().map(Place::due).toList();
  }

  Received ofEpoch(long epoch) {
    Received part = new Received(originals);
    places.stream().filter(place -> place.epoch == epoch).forEach(part.places::add);
    return part;
  }

  /** Batches of a rank. */
  long batches(int rank) {
    return places.stream().filter(place -> place.rank == rank && place.position == 0).count();
  }

  long repeats() {
    return places.stream().filter(Place::repeat).count();
  }

  long damaged() {
    return places.stream().filter(Place::damaged).count();
  }

  /** How often each sample has come, repeats not counted. */
  int[] times() {
    int[] times = new int[originals.count()];
    for (Place place : places) {
      if (!place.repeat) {
        times[(int) place.sample]++;
      }
    }
    return times;
  }

  /** Each sample has come exactly once. */
  void assertEachOnce() {
    assertEachOnce(sample -> true);
  }

  /** Each sample for which the predicate holds has come exactly once, and no other. */
  void assertEachOnce(LongPredicate due) {
    int[] times = times();
    for (int sample = 0; sample < times.length; sample++) {
      assertThat(times[sample])
          .as("sample %d, %s", sample, originals.key(sample))
          .isEqualTo(due.test(sample) ? 1 : 0);
    }
  }

  /** No sample has come twice; how many have not come. */
  long assertNoneTwice() {
    int[] times = times();
    assertThat(Arrays.stream(times).max().orElse(0)).isLessThanOrEqualTo(1);
    return Arrays.stream(times).filter(count -> count == 0).count();
  }

  /** What an epoch's plan says, in the order of training. */
  static List<Place> planned(Originals originals, LoaderOptions options, long epoch) {
    List<Place> all = new ArrayList<>();
    try (Dataset dataset = Dataset.open(originals.path())) {
      PlannedOrder order =
          new PlannedOrder(Policies.named(options.policy()).plan(inputs(dataset, options), epoch));
      for (var step = order.next(); step != null; step = order.next()) {
        for (PlanStep.Deliver[] batch : step) {
          for (PlanStep.Deliver place : batch) {
            all.add(
                new Place(
                    epoch,
                    place.step(),
                    place.rank(),
                    place.position(),
                    place.request(),
                    place.sample(),
                    place.sample(),
                    place.repeat(),
                    false));
          }
        }
      }
    }
    return all;
  }

  private static PlanInputs inputs(Dataset dataset, LoaderOptions options) {
    return PlanInputs.of(
        SampleLayout.of(dataset.snapshot()),
        options.seed(),
        options.world(),
        options.planSettings());
  }
}
