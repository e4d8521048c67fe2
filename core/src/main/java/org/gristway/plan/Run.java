package org.gristway.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * The plans of a training run, from where it begins or goes on. Immutable, for any thread.
 *
 * <p>A run that goes on in the world and with the settings that it was stopped in keeps its order.
 * In another, the samples of the epoch that were not delivered are planned anew as a further
 * segment; from the next epoch on nothing of that is left.
 */
public final class Run implements RunSteps.Epochs {

  private final ReadPolicy policy;
  private final PlanInputs whole; // of every epoch but perhaps the one that was gone on with
  private final PlanInputs rest;
  private final List<Segment> before; // of the rest's epoch: those that came before this one
  private final long restEpoch;
  private final long firstEpoch;
  private final long firstStep;
  private final long endEpoch;
  private final Map<Long, ReadPlan> recent = new HashMap<>(); // for all lanes: dealing takes time

  private Run(
      ReadPolicy policy,
      PlanInputs whole,
      PlanInputs rest,
      List<Segment> before,
      long restEpoch,
      long firstEpoch,
      long firstStep,
      long endEpoch) {
    this.policy = policy;
    this.whole = whole;
    this.rest = rest;
    this.before = before;
    this.restEpoch = restEpoch;
    this.firstEpoch = firstEpoch;
    this.firstStep = firstStep;
    this.endEpoch = endEpoch;
  }

  /**
   * A run from its beginning.
   *
   * @param inputs of every epoch
   * @param endEpoch the epoch behind the last
   */
  public static Run begin(ReadPolicy policy, PlanInputs inputs, long endEpoch) {
    return beginAt(0, policy, inputs, endEpoch);
  }

  /** A run from the beginning of a later epoch. */
  public static Run beginAt(long epoch, ReadPolicy policy, PlanInputs inputs, long endEpoch) {
    return new Run(policy, inputs, inputs, List.of(), epoch, epoch, 0, endEpoch);
  }

  /**
   * A run from a state on.
   *
   * @param inputs of the epochs to come; their world and settings may differ from the state's
   * @param named finds the policies of the state's segments
   * @throws Failure (wrong call) if the state is about other data, another seed, or orders that
   *     this version does not give
   */
  public static Run resume(
      ReadPolicy policy,
      PlanInputs inputs,
      ReadState state,
      Function<String, ReadPolicy> named,
      long endEpoch) {
    check(inputs, state, named);
    if (state.segments().isEmpty()) {
      return beginAt(state.epoch(), policy, inputs, endEpoch);
    }
    Segment last = state.segments().getLast();
    boolean goesOn = last.goesOnAs(inputs);
    List<Segment> before =
        goesOn ? state.segments().subList(0, state.segments().size() - 1) : state.segments();
    PlanInputs rest = inputs;
    for (Segment segment : before) {
      PlanInputs theirs = inputsOf(segment, rest);
      ReadPlan plan = named.apply(segment.settings().policy()).plan(theirs, state.epoch());
      refuseBeyond(theirs, segment);
      rest = rest.with(Delivered.leftAfter(plan, segment.steps()), theirs.segment() + 1);
    }
    long epoch = state.epoch();
    long step = goesOn ? last.steps() : 0;
    if (goesOn) {
      refuseBeyond(rest, last);
    }
    return step == rest.shares().steps()
        ? beginAt(epoch + 1, policy, inputs, endEpoch)
        : new Run(policy, inputs, rest, before, epoch, epoch, step, endEpoch);
  }

  private static void refuseBeyond(PlanInputs inputs, Segment segment) {
    long steps = inputs.shares().steps();
    if (segment.steps() > steps) {
      throw Failure.damaged(
          "the state is of step %d in a segment that has %d: it was not written by Gristway, or"
              + " changed since",
          segment.steps(), steps);
    }
  }

  /** What a segment was planned from: its own world and settings, and the samples left then. */
  private static PlanInputs inputsOf(Segment segment, PlanInputs now) {
    long extentBytes = segment.settings().extentBytes();
    return new PlanInputs(
        now.layout(),
        extentBytes == now.cuts().frameBytes()
            ? now.cuts()
            : ExtentCuts.cut(now.layout(), extentBytes),
        now.samples(),
        now.seed(),
        now.segment(),
        new World(segment.ranks(), segment.nodes(), 0),
        segment.settings());
  }

  private static void check(
      PlanInputs inputs, ReadState state, Function<String, ReadPolicy> named) {
    if (!state.dataset().equals(inputs.layout().id())) {
      throw Failure.wrongCall(
          "the state is of dataset %s, and this one is %s (identity and version)",
          state.dataset(), inputs.layout().id());
    }
    if (state.seed() != inputs.seed()) {
      throw Failure.wrongCall(
          "the state is of a run with seed %d, not %d", state.seed(), inputs.seed());
    }
    for (Segment segment : state.segments()) {
      ReadPolicy policy = named.apply(segment.settings().policy());
      if (policy.planVersion() != segment.planVersion()) {
        throw Failure.wrongCall(
            "the state has version %d of the orders of policy '%s', and this Gristway gives"
                + " version %d: finish the epoch with the one that wrote it, or begin the next",
            segment.planVersion(), policy.name(), policy.planVersion());
      }
    }
  }

  /**
   * The same run from another place on: what was gone on with stays what is left of its epoch, and
   * every other epoch is whole.
   *
   * @param step of that epoch's plan; its last one's successor is the next epoch's first
   */
  public Run from(long epoch, long step) {
    if (epoch < 0 || step < 0 || step > steps(epoch)) {
      throw Failure.wrongCall(
          "there is no step %d in epoch %d, which has %d", step, epoch, steps(epoch));
    }
    boolean isOver = step == steps(epoch);
    return new Run(
        policy,
        whole,
        rest,
        before,
        restEpoch,
        isOver ? epoch + 1 : epoch,
        isOver ? 0 : step,
        endEpoch);
  }

  public long firstEpoch() {
    return firstEpoch;
  }

  /** The step of the first epoch's plan that is the first to be delivered. */
  public long firstStep() {
    return firstStep;
  }

  /** What the run begins with: a whole epoch, or what is left of one. */
  public ReadPlan firstPlan() {
    return planned(firstEpoch);
  }

  @Override
  public @Nullable ReadPlan plan(long epoch) {
    return epoch >= endEpoch ? null : planned(epoch);
  }

  private ReadPlan planned(long epoch) {
    synchronized (recent) {
      recent.keySet().removeIf(old -> old < epoch - 1);
      return recent.computeIfAbsent(epoch, _ -> policy.plan(inputs(epoch), epoch));
    }
  }

  /** Batches that each rank gets in an epoch of this run, those before its first step included. */
  public long steps(long epoch) {
    return inputs(epoch).shares().steps();
  }

  private PlanInputs inputs(long epoch) {
    return epoch == restEpoch ? rest : whole;
  }

  /** Everything that a rank's lane does in this run. */
  public RunSteps lane(int rank) {
    return new RunSteps(firstEpoch, firstStep, rank, this);
  }

  /** The state of this run when every rank has received {@code step} steps of an epoch's plan. */
  public ReadState stateAt(long epoch, long step) {
    List<Segment> segments = new ArrayList<>(epoch == restEpoch ? before : List.of());
    segments.add(Segment.of(whole, policy.planVersion(), step));
    return new ReadState(whole.layout().id(), whole.seed(), epoch, segments);
  }
}
