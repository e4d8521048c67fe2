package org.gristway.plan;

import java.util.ArrayList;
import java.util.List;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Load;

/** Steps that were pulled out of a plan. */
public final class Pulled {

  private static final int MOST_STEPS = 1_000_000;

  private Pulled() {}

  /** A place in training, and what came there. */
  public record Place(
      long step, int rank, int position, long request, long sample, boolean repeat) {
    public static Place of(Deliver deliver) {
      return new Place(
          deliver.step(),
          deliver.rank(),
          deliver.position(),
          deliver.request(),
          deliver.sample(),
          deliver.repeat());
    }
  }

  /** All steps of a lane. */
  public static List<PlanStep> all(PlanSteps lane) {
    List<PlanStep> steps = new ArrayList<>();
    for (PlanStep step = lane.next(); step != null; step = lane.next()) {
      steps.add(step);
      if (steps.size() > MOST_STEPS) {
        throw new AssertionError("the lane does not end");
      }
    }
    return steps;
  }

  /** All steps of every lane of a plan, where nothing is in memory yet. */
  public static List<List<PlanStep>> byRank(ReadPlan plan) {
    List<List<PlanStep>> lanes = new ArrayList<>();
    for (int rank = 0; rank < plan.inputs().world().ranks(); rank++) {
      lanes.add(all(plan.lane(rank, true)));
    }
    return lanes;
  }

  public static List<Deliver> deliveries(List<PlanStep> steps) {
    return of(Deliver.class, steps);
  }

  /** The deliveries to all ranks, one rank after the other. */
  public static List<Deliver> deliveries(ReadPlan plan) {
    return byRank(plan).stream().flatMap(lane -> deliveries(lane).stream()).toList();
  }

  public static List<Place> places(ReadPlan plan) {
    return deliveries(plan).stream().map(Place::of).toList();
  }

  /** The loads for samples that are due, without those for repeats. */
  public static List<Load> loads(List<PlanStep> steps) {
    List<Load> loads = new ArrayList<>();
    for (int i = 0; i < steps.size(); i++) {
      if (steps.get(i) instanceof Load load
          && !(load.frame() == PlanStep.IN_BATCH && isForRepeat(load, steps.get(i + 1)))) {
        loads.add(load);
      }
    }
    return loads;
  }

  /** What is due and read past the frames is an extent of its own, which nobody has read before. */
  private static boolean isForRepeat(Load load, PlanStep next) {
    return next instanceof Deliver deliver ? deliver.repeat() : load.again();
  }

  public static <S extends PlanStep> List<S> of(Class<S> kind, List<PlanStep> steps) {
    return steps.stream().filter(kind::isInstance).map(kind::cast).toList();
  }
}
