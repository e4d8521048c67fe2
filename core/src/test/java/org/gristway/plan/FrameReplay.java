package org.gristway.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.gristway.chunk.Extent;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.PlanStep.Release;
import org.gristway.plan.PlanStep.Send;

/** Carries steps out with frames that exist in name only, and notes what no executor could do. */
public final class FrameReplay {

  private static final long NONE = -1;

  private final SampleLayout layout;
  private final long frameBytes;
  private final int firstFrame;
  private final int frames;
  private final Map<Integer, Extent> held = new HashMap<>();
  private final List<String> violations = new ArrayList<>();
  private Extent straight; // read into the batch by the step before
  private long received = NONE; // the sample that the step before has taken
  private final Set<Long> batch = new HashSet<>();
  private long batchStep = -1;

  /** A lane that has {@code frames} frames from {@code firstFrame} on. */
  public FrameReplay(SampleLayout layout, long frameBytes, int firstFrame, int frames) {
    this.layout = layout;
    this.frameBytes = frameBytes;
    this.firstFrame = firstFrame;
    this.frames = frames;
  }

  /** The frames of a rank in a plan whose lanes have equal stretches of them. */
  public static FrameReplay of(ReadPlan plan, int rank) {
    World world = plan.inputs().world();
    int share = plan.frames() / world.mostRanks();
    return new FrameReplay(
        plan.inputs().layout(), plan.frameBytes(), world.laneOf(rank) * share, share);
  }

  public FrameReplay addAll(List<? extends PlanStep> steps) {
    steps.forEach(this::add);
    return this;
  }

  public void add(PlanStep step) {
    if (straight != null) {
      rule(
          (step instanceof Deliver next && next.frame() == PlanStep.IN_BATCH)
              || (step instanceof Send push && push.frame() == PlanStep.IN_BATCH),
          "what is read past the frames is not used at once",
          step);
    }
    if (received != NONE) {
      rule(
          step instanceof Deliver next && next.frame() == PlanStep.RECEIVED,
          "what is received is not delivered at once",
          step);
    }
    switch (step) {
      case Load load -> load(load);
      case Deliver deliver -> deliver(deliver);
      case Release release ->
          rule(held.remove(release.frame()) != null, "releases a frame that is not held", step);
      case PlanStep.EpochEnd _ -> batchStep = -1;
      case PlanStep.Fetch fetch ->
          load(new Load(layout.location(fetch.sample()), fetch.frame(), false));
      case PlanStep.Keep keep -> rule(batch.contains(keep.sample()), "is not at hand", keep);
      case PlanStep.Drop _ -> {}
      case Send send -> send(send);
      case PlanStep.Receive receive -> received = receive.sample();
    }
  }

  private void load(Load load) {
    if (load.frame() == PlanStep.IN_BATCH) {
      straight = load.extent();
      return;
    }
    rule(
        load.frame() >= firstFrame && load.frame() < firstFrame + frames,
        "loads into a frame that is not its own",
        load);
    rule(ExtentCuts.coveringBytes(load.extent()) <= frameBytes, "does not fit its frame", load);
    rule(held.put(load.frame(), load.extent()) == null, "loads into a frame that is held", load);
  }

  private void deliver(Deliver deliver) {
    if (deliver.step() != batchStep) {
      batch.clear();
      batchStep = deliver.step();
    }
    Extent location = layout.location(deliver.sample());
    if (deliver.frame() == PlanStep.RECEIVED) {
      rule(received == deliver.sample(), "is not what was received", deliver);
      received = NONE;
    } else if (deliver.frame() != PlanStep.IN_BATCH) {
      rule(covers(held.get(deliver.frame()), location), "is not in its frame", deliver);
    } else if (straight != null) {
      rule(straight.equals(location), "is not what was read into the batch", deliver);
      rule(
          deliver.repeat() || ExtentCuts.coveringBytes(location) > frameBytes,
          "would have fitted a frame",
          deliver);
    } else {
      rule(
          deliver.repeat() && batch.contains(deliver.sample()),
          "is not in its batch already",
          deliver);
    }
    straight = null;
    batch.add(deliver.sample());
  }

  private void send(Send send) {
    Extent location = layout.location(send.sample());
    if (send.frame() == PlanStep.IN_BATCH) {
      rule(location.equals(straight), "is not what was read", send);
      straight = null;
    } else {
      rule(covers(held.get(send.frame()), location), "is not in its frame", send);
    }
  }

  private static boolean covers(Extent extent, Extent location) {
    return extent != null
        && extent.chunk() == location.chunk()
        && extent.offset() <= location.offset()
        && extent.offset() + extent.length() >= location.offset() + location.length();
  }

  private void rule(boolean holds, String otherwise, PlanStep step) {
    if (!holds) {
      violations.add(step + " " + otherwise);
    }
  }

  /** The frames that are held now. */
  public Set<Integer> held() {
    return held.keySet();
  }

  public List<String> violations() {
    return violations;
  }
}
