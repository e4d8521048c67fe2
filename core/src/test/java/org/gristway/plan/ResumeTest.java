package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.chunk.Extent;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlanStep.Load;
import org.gristway.plan.RunStepsTest.InEpoch;
import org.gristway.plan.policy.Policies;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class ResumeTest {

  private static final int EPOCHS = 3;
  private static final long EXTENT = 16 << 10;
  private static final long SEED = 5;

  /** Most extents have some ten samples; a few samples are larger than one. */
  private static final TestLayout LAYOUT =
      Layouts.formula("resumed/1", 700, i -> i % 97 == 0 ? 50_000 : i * 7919L % 3000);

  private static PlanSettings settings(String policy, Tail tail) {
    return new PlanSettings(policy, 8, 9 * EXTENT, EXTENT, tail);
  }

  private static PlanInputs inputs(int ranks, PlanSettings settings) {
    return PlanInputs.of(LAYOUT, SEED, World.of(ranks), settings);
  }

  private static Run begin(PlanInputs inputs) {
    return Run.begin(Policies.named(inputs.settings().policy()), inputs, EPOCHS);
  }

  /** Goes on from what the text of a state says. */
  private static Run resume(PlanInputs inputs, ReadState state) {
    return Run.resume(
        Policies.named(inputs.settings().policy()),
        inputs,
        ReadState.parse(state.toString()),
        Policies::named,
        EPOCHS);
  }

  /** What comes where in a run. */
  private record Received(long epoch, Pulled.Place place) {
    boolean isFrom(long fromEpoch, long step) {
      return epoch > fromEpoch || (epoch == fromEpoch && place.step() >= step);
    }
  }

  /** What all ranks receive, one rank after the other. */
  private static List<Received> received(Run run) {
    List<Received> received = new ArrayList<>();
    for (int rank = 0; rank < run.firstPlan().inputs().world().ranks(); rank++) {
      for (InEpoch each : RunStepsTest.all(run.lane(rank))) {
        if (each.step() instanceof Deliver deliver) {
          received.add(new Received(each.epoch(), Pulled.Place.of(deliver)));
        }
      }
    }
    return received;
  }

  private static List<Received> from(List<Received> all, long epoch, long step) {
    return all.stream().filter(each -> each.isFrom(epoch, step)).toList();
  }

  private static void assertSame(List<Received> found, List<Received> expected, String name) {
    assertThat(found.size()).as(name).isEqualTo(expected.size());
    for (int i = 0; i < expected.size(); i++) {
      if (!found.get(i).equals(expected.get(i))) {
        assertThat(found.get(i)).as("%s: delivery %d", name, i).isEqualTo(expected.get(i));
      }
    }
  }

  @Test
  void in_the_same_world_the_order_goes_on_however_often_it_is_resumed() {
    Random random = new Random(Seeds.of("in_the_same_world_the_order_goes_on"));
    for (int trial = 0; trial < Thorough.count(20, 500); trial++) {
      for (ReadPolicy policy : Policies.all()) {
        PlanSettings settings = PlanCase.settings(random, policy, LAYOUT);
        PlanInputs inputs = inputs(1 + random.nextInt(4), settings);
        Run run = begin(inputs);
        List<Received> all = received(run);
        long epoch = 0;
        long step = 0;
        for (int resumes = 0; resumes < 3; resumes++) {
          epoch += random.nextInt(2);
          if (epoch == EPOCHS) {
            break;
          }
          step =
              random.nextLong(
                  epoch == run.firstEpoch() ? run.firstStep() : 0, run.steps(epoch) + 1);
          if (epoch == EPOCHS - 1 && step == run.steps(epoch)) {
            break; // a run that has ended has a test of its own
          }
          run = resume(inputs, run.stateAt(epoch, step));
          String name =
              "%s, %d ranks, epoch %d, step %d"
                  .formatted(settings, inputs.world().ranks(), epoch, step);
          assertSame(received(run), from(all, epoch, step), name);
          epoch = run.firstEpoch();
        }
      }
    }
  }

  @Test
  void at_the_end_of_an_epoch_the_next_one_begins() {
    for (String policy : Policies.names()) {
      PlanInputs inputs = inputs(2, settings(policy, Tail.SHORT));
      Run run = begin(inputs);
      ReadState state = run.stateAt(0, run.steps(0));
      for (int ranks : new int[] {2, 3}) {
        PlanInputs others = inputs(ranks, settings(policy, Tail.SHORT));
        Run next = resume(others, state);
        assertThat(next.firstEpoch()).isEqualTo(1);
        assertThat(next.firstStep()).isZero();
        assertSame(received(next), from(received(begin(others)), 1, 0), policy);
      }
    }
  }

  @Test
  void a_run_that_has_ended_delivers_nothing_more() {
    for (String policy : Policies.names()) {
      PlanInputs inputs = inputs(2, settings(policy, Tail.SHORT));
      Run run = begin(inputs);
      Run resumed = resume(inputs, run.stateAt(EPOCHS - 1, run.steps(EPOCHS - 1)));
      assertThat(received(resumed)).as(policy).isEmpty();
    }
  }

  @Test
  void a_run_may_be_stopped_before_its_first_step() {
    for (String policy : Policies.names()) {
      PlanInputs inputs = inputs(2, settings(policy, Tail.SHORT));
      Run run = begin(inputs);
      assertSame(received(resume(inputs, run.stateAt(0, 0))), received(run), policy);
      ReadState bare = new ReadState(LAYOUT.id(), SEED, 1, List.of());
      assertSame(received(resume(inputs, bare)), from(received(run), 1, 0), policy);
    }
  }

  @Test
  void changing_worlds_and_settings_deliver_every_sample_once() {
    Random random = new Random(Seeds.of("changing_worlds_and_settings_deliver_every_sample_once"));
    for (int trial = 0; trial < Thorough.count(40, 1000); trial++) {
      Tail tail = Tail.values()[random.nextInt(3)];
      PlanSettings settings =
          settings(Policies.names().get(random.nextInt(Policies.names().size())), tail);
      boolean otherSettings = random.nextBoolean();
      BitSet delivered = new BitSet();
      PlanInputs inputs = inputs(1, settings);
      Run run = begin(inputs);
      ReadState state = run.stateAt(0, 0);
      for (int ranks : new int[] {1, 2, 2, 3, 1}) {
        if (otherSettings) {
          ReadPolicy policy = Policies.all().get(random.nextInt(Policies.all().size()));
          settings = withTail(PlanCase.settings(random, policy, LAYOUT), tail);
        }
        inputs = inputs(ranks, settings);
        run = resume(inputs, state);
        if (run.firstEpoch() == 0) {
          long stop = random.nextLong(run.firstStep(), run.steps(0) + 1);
          deliver(run, stop, delivered);
          state = run.stateAt(0, stop);
        }
      }
      String name = "trial " + trial + ", " + state;
      run = resume(inputs, state);
      if (run.firstEpoch() == 0) {
        deliver(run, run.steps(0), delivered);
      }
      long left = LAYOUT.sampleCount() - delivered.cardinality();
      assertThat(left).as(name).isLessThan(tail == Tail.DROP ? globalBatch(inputs) : 1);
      List<Received> next = from(received(begin(inputs)), 1, 0);
      assertSame(from(received(run), 1, 0), next, name);
      long step = random.nextLong(run.steps(1) + 1);
      run = resume(inputs, run.stateAt(1, step));
      assertSame(received(run), from(next, 1, step), name);
    }
  }

  /** The samples in chunks of their own, so that nodes have some each. */
  private static final TestLayout CHUNKS = chunks(40, 15);

  private static TestLayout chunks(int chunks, int samples) {
    long[] lengths = new long[chunks * samples];
    Arrays.setAll(lengths, i -> i * 7919L % 3000);
    int[] firsts = new int[chunks];
    Arrays.setAll(firsts, chunk -> chunk * samples);
    return new TestLayout("chunks/1", lengths, firsts, new long[chunks]);
  }

  private static PlanInputs placed(int ranks, int nodes, Tail tail) {
    PlanSettings settings =
        settings("redirect", tail).withExchange(Exchange.of(1).withHomes(Homes.PLACED));
    return PlanInputs.of(CHUNKS, SEED, new World(ranks, nodes, 0), settings);
  }

  @Test
  void placed_chunks_are_delivered_once_in_changing_worlds() {
    Random random = new Random(Seeds.of("placed_chunks_are_delivered_once_in_changing_worlds"));
    int[][] worlds = {{4, 2}, {4, 4}, {3, 3}, {4, 2}, {6, 3}};
    for (int trial = 0; trial < Thorough.count(10, 200); trial++) {
      Tail tail = Tail.values()[random.nextInt(3)];
      BitSet delivered = new BitSet();
      PlanInputs inputs = placed(4, 2, tail);
      ReadState state = begin(inputs).stateAt(0, 0);
      for (int[] world : worlds) {
        inputs = placed(world[0], world[1], tail);
        Run run = resume(inputs, state);
        if (run.firstEpoch() == 0) {
          long stop = random.nextLong(run.firstStep(), 1 + (run.firstStep() + run.steps(0)) / 2);
          deliver(run, stop, delivered);
          state = run.stateAt(0, stop);
          // In the world that it was stopped in, what comes next is what would have come.
          List<Received> next = received(resume(inputs, state));
          assertSame(next, from(received(run), 0, stop), "trial " + trial + ", " + state);
        }
      }
      Run run = resume(inputs, state);
      deliver(run, run.steps(0), delivered);
      long left = CHUNKS.sampleCount() - delivered.cardinality();
      assertThat(left).isLessThan(tail == Tail.DROP ? globalBatch(inputs) : 1);
    }
  }

  @Test
  void with_placed_chunks_other_nodes_are_another_world() {
    ReadState state = begin(placed(4, 2, Tail.SHORT)).stateAt(0, 3);
    assertThat(state.toString()).contains("ranks=4 nodes=2", "homes=placed");
    assertThat(resume(placed(4, 2, Tail.SHORT), state).firstPlan().inputs().segment()).isZero();
    assertThat(resume(placed(4, 4, Tail.SHORT), state).firstPlan().inputs().segment()).isOne();
  }

  @Test
  void every_segment_has_random_numbers_of_its_own() {
    PlanInputs two = inputs(2, settings("redirect", Tail.SHORT));
    PlanInputs three = inputs(3, settings("redirect", Tail.SHORT));
    Run first = begin(two);
    Run second = resume(three, first.stateAt(0, 5));
    Run third = resume(two, second.stateAt(0, 5));
    assertThat(first.firstPlan().inputs().segment()).isZero();
    assertThat(second.firstPlan().inputs().segment()).isEqualTo(1);
    assertThat(third.firstPlan().inputs().segment()).isEqualTo(2);
    assertThat(third.plan(1).inputs().segment()).isZero();
    assertThat(third.stateAt(0, 1).segments()).hasSize(3);
    assertThat(third.stateAt(1, 1).segments()).hasSize(1);
  }

  private static long globalBatch(PlanInputs inputs) {
    return (long) inputs.world().ranks() * inputs.settings().batchSize();
  }

  private static PlanSettings withTail(PlanSettings settings, Tail tail) {
    return new PlanSettings(
        settings.policy(), settings.batchSize(), settings.memory(), settings.extentBytes(), tail);
  }

  /** Notes what the first epoch of a run delivers before a step. */
  private static void deliver(Run run, long stop, BitSet delivered) {
    for (Received each : received(run)) {
      if (each.epoch() == 0 && each.place().step() < stop && !each.place().repeat()) {
        int sample = (int) each.place().sample();
        assertThat(delivered.get(sample)).as("sample %d comes twice", sample).isFalse();
        delivered.set(sample);
      }
    }
  }

  @Test
  void in_another_world_extents_that_were_delivered_in_part_are_read_again_and_no_others() {
    for (String policy : List.of("redirect", "chunk-shuffle")) {
      Run run = begin(inputs(2, settings(policy, Tail.SHORT)));
      BitSet delivered = new BitSet();
      deliver(run, 20, delivered);
      Run resumed = resume(inputs(3, settings(policy, Tail.SHORT)), run.stateAt(0, 20));
      ExtentCuts cuts = resumed.firstPlan().inputs().cuts();
      Set<Long> again = new HashSet<>();
      Set<Long> fresh = new HashSet<>();
      for (List<PlanStep> lane : Pulled.byRank(resumed.firstPlan())) {
        for (Load load : Pulled.loads(lane)) {
          (load.again() ? again : fresh).add(cuts.extentOf(LAYOUT.samplesIn(load.extent())[0]));
        }
      }
      Set<Long> inPart = new HashSet<>();
      Set<Long> untouched = new HashSet<>();
      for (long extent = 0; extent < cuts.count(); extent++) {
        int first = (int) cuts.firstSample(extent);
        int end = (int) cuts.firstSample(extent + 1);
        int left = end - first - delivered.get(first, end).cardinality();
        if (left > 0) {
          (left < end - first ? inPart : untouched).add(extent);
        }
      }
      assertThat(again).as(policy).isNotEmpty().isEqualTo(inPart);
      assertThat(fresh).as(policy).isEqualTo(untouched);
    }
  }

  @Test
  void in_the_same_world_only_what_was_in_memory_is_read_again() {
    for (String policy :
        List.of("sample-order", "redirect", "chunk-shuffle", "redirect-position")) {
      PlanInputs inputs = inputs(2, settings(policy, Tail.PAD));
      Run run = begin(inputs);
      for (long step = 1; step < run.steps(0); step++) {
        for (int rank = 0; rank < 2; rank++) {
          List<PlanStep> whole = Pulled.all(run.firstPlan().lane(rank, true));
          int at = firstDeliveryOf(whole, step);
          FrameReplay before = FrameReplay.of(run.firstPlan(), rank).addAll(whole.subList(0, at));
          Set<Extent> loadedLater = extents(whole.subList(at, whole.size()), false);

          List<InEpoch> resumed = RunStepsTest.all(resume(inputs, run.stateAt(0, step)).lane(rank));
          List<PlanStep> steps = RunStepsTest.of(resumed, 0);
          assertThat(extents(steps, true)).as("%s %d", policy, step).hasSize(before.held().size());
          assertThat(extents(steps, false)).as("%s %d", policy, step).isEqualTo(loadedLater);
          FrameReplay replay =
              FrameReplay.of(run.firstPlan(), rank)
                  .addAll(resumed.stream().map(InEpoch::step).toList());
          assertThat(replay.violations()).as("%s %d", policy, step).isEmpty();
          assertThat(replay.held()).as("%s %d", policy, step).isEmpty();
        }
      }
    }
  }

  @Test
  void a_resumed_lane_says_whether_loads_are_left() {
    ReadPlan plan = begin(inputs(2, settings("redirect", Tail.SHORT))).firstPlan();
    for (long step = 1; step < plan.steps(); step++) {
      PlanSteps lane = new Resumed(plan.lane(1, true), step);
      boolean left = lane.loadsLeft();
      for (PlanStep next = lane.next(); next != null; next = lane.next()) {
        if (next instanceof Load load && load.frame() != PlanStep.IN_BATCH) {
          assertThat(left).as("step %d: %s", step, load).isTrue();
        }
        left = lane.loadsLeft();
      }
      assertThat(left).isFalse();
    }
  }

  private static int firstDeliveryOf(List<PlanStep> steps, long step) {
    int at = 0;
    while (!(steps.get(at) instanceof Deliver deliver && deliver.step() == step)) {
      at++;
    }
    // What is read straight into the batch belongs to its delivery.
    return steps.get(at - 1) instanceof Load load && load.frame() == PlanStep.IN_BATCH
        ? at - 1
        : at;
  }

  private static Set<Extent> extents(List<PlanStep> steps, boolean again) {
    Set<Extent> extents = new HashSet<>();
    for (Load load : Pulled.loads(steps)) {
      if (load.again() == again) {
        extents.add(load.extent());
      }
    }
    return extents;
  }

  @Test
  void a_state_of_something_else_is_refused_and_named() {
    PlanInputs inputs = inputs(2, settings("redirect", Tail.SHORT));
    ReadState state = begin(inputs).stateAt(0, 3);
    ReadState otherDataset = new ReadState("other/7", SEED, 0, state.segments());
    assertFails(Kind.WRONG_CALL, () -> resume(inputs, otherDataset), "other/7", LAYOUT.id());
    ReadState otherSeed = new ReadState(LAYOUT.id(), 99, 0, state.segments());
    assertFails(Kind.WRONG_CALL, () -> resume(inputs, otherSeed), "seed 99", "5");
    ReadState otherVersion = with(state, new Segment(inputs.settings(), 77, 2, 3));
    assertFails(Kind.WRONG_CALL, () -> resume(inputs, otherVersion), "version 77", "redirect", "1");
    ReadState otherPolicy = with(state, new Segment(settings("no-such", Tail.SHORT), 1, 2, 3));
    assertFails(Kind.WRONG_CALL, () -> resume(inputs, otherPolicy), "no-such");
  }

  @Test
  void a_state_that_no_run_can_have_is_refused() {
    PlanInputs inputs = inputs(2, settings("redirect", Tail.SHORT));
    ReadState state = begin(inputs).stateAt(0, 3);
    List<String> notRefused = new ArrayList<>();
    for (String field :
        List.of(
            "epoch -1",
            "steps=-1",
            "steps=1000000",
            "ranks=1 steps=-1",
            "ranks=1 steps=1000000",
            "ranks=0",
            "ranks=-1",
            "ranks=2147483647",
            "ranks=4294967298",
            "version=4294967297",
            "batch=4294967304",
            "memory=-1")) {
      String text = state.toString();
      for (String each : field.startsWith("epoch") ? List.of(field) : List.of(field.split(" "))) {
        text = text.replaceFirst(each.split("[ =]")[0] + "[ =][0-9]+", each);
      }
      try {
        resume(inputs, ReadState.parse(text));
        notRefused.add(field);
      } catch (Failure refused) {
        assertThat(refused.kind()).as(field).isNotEqualTo(Kind.ENVIRONMENT);
      } catch (RuntimeException bug) {
        notRefused.add(field + ": " + bug);
      }
    }
    assertThat(notRefused).isEmpty();
  }

  private static ReadState with(ReadState state, Segment segment) {
    return new ReadState(state.dataset(), state.seed(), state.epoch(), List.of(segment));
  }
}
