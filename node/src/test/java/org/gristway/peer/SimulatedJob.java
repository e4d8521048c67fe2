package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.plan.Exchange;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlannedOrder;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.ReadState;
import org.gristway.plan.Run;
import org.gristway.plan.RunSteps;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;
import org.gristway.read.Beginning;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;
import org.gristway.read.Parcel;
import org.gristway.read.PeerCaches;
import org.gristway.read.PostOffice;

/**
 * A job of several nodes in virtual time: the loaders, post offices and peers are the real ones,
 * the threads, the network and the trainers are those of a {@link Timeline}. All that must hold at
 * every moment is checked on the way.
 */
final class SimulatedJob implements AutoCloseable {

  private static final long MILLISECOND = 1_000_000;
  private static final long SECOND = 1000 * MILLISECOND;
  private static final long WATCH_NANOS = 100 * MILLISECOND;

  /** By when every rank that is left must know that a node is lost. */
  private static final long MOST_FAILING_NANOS = 10 * SECOND;

  /** Without anything but signs of life: longer than any trouble that ends. */
  private static final long STUCK_NANOS = 15 * SECOND;

  /** A batch that a rank must get. */
  private record Due(long epoch, List<PlanStep.Deliver> places) {
    long step() {
      return places.getFirst().step();
    }
  }

  /** A sample that a rank pushes to another. */
  private record Push(int from, int to, long epoch, long step, int position, long sample) {}

  private final Originals originals;
  private final LoaderOptions options;
  private final int nodes;
  private final int ranks;
  private final World world;
  private final Trouble trouble;
  private final Random random;
  private final Timeline time;
  private final VirtualNetwork network;
  private final Run run;
  private final List<List<Due>> due = new ArrayList<>(); // by rank
  private final Map<Push, Boolean> pushes = new HashMap<>(); // those that have not come
  private final Peers[] peers;
  private final Loader[] loaders;
  private final Thread[] trainers; // by rank
  private final int stepsAtOnce;
  private final long trainNanos;
  private final int slowNode;
  private final int[] received; // batches, by rank
  private final Failure[] failures; // by rank
  private final long[] failedAt; // by rank
  private final int[] training; // by node: ranks that have not got all
  private final boolean[] isStruck; // by node
  private final long struckAfter; // batches of all ranks
  private long struckAt = -1;
  private long wellAgain; // when a node that hung goes on
  private long batches;
  private boolean isEnding;
  private Throwable bug;

  /**
   * @param options of all nodes, but for their world
   * @param state to go on from, or null
   */
  SimulatedJob(
      Originals originals,
      LoaderOptions options,
      int nodes,
      int ranks,
      ReadState state,
      Trouble trouble,
      Random random) {
    this.originals = originals;
    this.options = options;
    this.nodes = nodes;
    this.ranks = ranks;
    this.world = new World(ranks, nodes, 0);
    this.trouble = trouble;
    this.random = random;
    this.time = new Timeline(random, nodes, oneOf(2_000, 50_000, MILLISECOND));
    this.stepsAtOnce = 1 + Math.max(0, random.nextInt(5) - 2); // 1, as often as not
    this.trainNanos = oneOf(1_000, MILLISECOND, 10 * MILLISECOND);
    this.slowNode = random.nextInt(2 * nodes); // none, as often as not
    this.network =
        new VirtualNetwork(
            time, nodes, ranks, oneOf(50_000, MILLISECOND, 15 * MILLISECOND), this::inspect);
    this.peers = new Peers[nodes];
    this.loaders = new Loader[nodes];
    this.trainers = new Thread[ranks];
    this.received = new int[ranks];
    this.failures = new Failure[ranks];
    this.failedAt = new long[ranks];
    this.training = new int[nodes];
    this.isStruck = new boolean[nodes];
    this.run = run(state);
    plan();
    this.struckAfter = (long) (random.nextDouble() * ranks * due.getFirst().size());
    start(state);
  }

  private long oneOf(long... values) {
    return values[random.nextInt(values.length)];
  }

  private LoaderOptions options(int node) {
    return options.withWorld(new World(ranks, nodes, node));
  }

  private Run run(ReadState state) {
    ReadPolicy policy = Policies.named(options.policy());
    PlanInputs inputs =
        PlanInputs.of(
            SampleLayout.of(originals.snapshot()),
            options.seed(),
            world,
            options(0).planSettings());
    return state == null
        ? Run.begin(policy, inputs, options.epochs())
        : Run.resume(policy, inputs, state, Policies::named, options.epochs());
  }

  /** Finds out what each rank must get, and from whom. */
  private void plan() {
    for (int rank = 0; rank < ranks; rank++) {
      due.add(new ArrayList<>());
      RunSteps lane = run.lane(rank);
      for (PlanStep step = lane.next(); step != null; step = lane.next()) {
        if (step instanceof PlanStep.Receive take) {
          pushes.put(
              new Push(
                  take.rank(), rank, lane.epoch(), take.step(), take.position(), take.sample()),
              true);
        }
      }
    }
    for (long epoch = run.firstEpoch(); epoch < options.epochs(); epoch++) {
      PlannedOrder order = new PlannedOrder(run.plan(epoch));
      long at = epoch == run.firstEpoch() ? -run.firstStep() : 0;
      for (var step = order.next(); step != null; step = order.next()) {
        for (int rank = 0; rank < ranks && at >= 0; rank++) {
          if (at % stepsAtOnce == 0) {
            due.get(rank).add(new Due(epoch, new ArrayList<>()));
          }
          due.get(rank).getLast().places.addAll(List.of(step[rank]));
        }
        at++;
      }
    }
  }

  private void start(ReadState state) {
    for (int node = 0; node < nodes; node++) {
      peers[node] =
          new Peers(
              new World(ranks, nodes, node),
              originals.snapshot(),
              options.batchSize(),
              options.exchange().window(),
              PeerCaches.NONE,
              why -> {});
    }
    network.connect(peers);
    for (int node = 0; node < nodes; node++) {
      loaders[node] =
          Loader.open(
              Dataset.open(originals.path()),
              options(node),
              new Beginning(state, null, null, stepsAtOnce),
              peers[node].office(),
              PeerCaches.NONE,
              time.threads(node),
              line -> bug = new AssertionError(line));
      watch(node);
    }
    for (int rank = 0; rank < ranks; rank++) {
      int own = rank;
      int node = world.nodeOf(rank);
      trainers[rank] = time.threads(node).unstarted("trainer-" + rank, () -> train(own, node));
      training[node]++;
      trainers[rank].start();
    }
  }

  private void watch(int node) {
    time.upkeepAt(
        time.now() + WATCH_NANOS,
        node,
        () -> {
          if (!isEnding && peers[node].watch(time.now())) {
            watch(node);
          }
        });
  }

  private void train(int rank, int node) {
    try {
      for (Due each : due.get(rank)) {
        try (Batch batch = loaders[node].next(rank)) {
          assertIs(batch, rank, each);
          time.note(rank);
          received[rank]++;
          mayStrike();
          time.sleep(node, time.about(node == slowNode ? 3 * trainNanos : trainNanos));
        }
      }
      if (!trouble.isFatal()) {
        assertThatThrownBy(() -> loaders[node].next(rank)).hasMessageContaining("no more batches");
      }
      if (--training[node] == 0) {
        loaders[node].close();
        peers[node].leave();
      }
    } catch (Failure failure) {
      failures[rank] = failure;
      failedAt[rank] = time.now();
    } catch (Throwable thrown) {
      if (!isEnding) {
        bug = thrown;
      }
    }
  }

  private boolean hasAll(int rank) {
    return received[rank] == due.get(rank).size();
  }

  private void assertIs(Batch batch, int rank, Due expected) {
    assertThat(batch.rank()).isEqualTo(rank);
    assertThat(batch.epoch()).isEqualTo(expected.epoch);
    assertThat(batch.step()).isEqualTo(expected.step());
    assertThat(batch.size()).isEqualTo(expected.places.size());
    for (int i = 0; i < batch.size(); i++) {
      assertThat(batch.sample(i)).isEqualTo(expected.places.get(i).sample());
      assertThat(batch.isRepeat(i)).isEqualTo(expected.places.get(i).repeat());
      assertThat(Arrays.equals(batch.bytes(i), originals.bytes(batch.sample(i)))).isTrue();
    }
  }

  /** Sees that a parcel is due, has not come before, and that there is room for it. */
  private void inspect(Parcel parcel) {
    PostOffice.Place place = network.told(parcel.to());
    assertThat(parcel.epoch()).as("epoch of what is pushed").isEqualTo(place.epoch());
    assertThat(parcel.step() - place.step())
        .as("steps that are pushed ahead")
        .isBetween(1L, (long) Exchange.room(options.exchange().window()));
    for (int i = 0; i < parcel.count(); i++) {
      Push push =
          new Push(
              parcel.from(),
              parcel.to(),
              parcel.epoch(),
              parcel.step(),
              parcel.position(i),
              parcel.sample(i));
      assertThat(pushes.remove(push)).as("%s is due", push).isNotNull();
    }
  }

  private void mayStrike() {
    if (batches++ == struckAfter && trouble != Trouble.NONE) {
      time.at(time.now() + time.about(MILLISECOND), Timeline.NOBODY, this::strike);
    }
  }

  private void strike() {
    if (isEnding) {
      return; // too late: all have got all
    }
    struckAt = time.now();
    long shortly = (long) ((0.1 + 3.9 * random.nextDouble()) * SECOND);
    long longer = (long) ((6.7 + 2 * random.nextDouble()) * SECOND);
    int most = trouble == Trouble.SHORT_CUT || trouble == Trouble.CUT ? nodes - 1 : 2;
    int victims = trouble == Trouble.BREAK ? 2 : 1 + random.nextInt(most);
    random.ints(0, nodes).distinct().limit(victims).forEach(node -> isStruck[node] = true);
    for (int node = 0; node < nodes; node++) {
      if (isStruck[node]) {
        strike(node, shortly, longer);
      }
    }
  }

  private void strike(int node, long shortly, long longer) {
    switch (trouble) {
      case NONE -> {}
      case SHORT_HANG -> time.standStill(node, shortly);
      case LONG_HANG -> {
        time.standStill(node, longer);
        wellAgain = time.now() + longer;
      }
      case KILL -> {
        time.standStillForGood(node);
        long noticed = time.now() + time.about(100 * MILLISECOND);
        time.at(noticed, Timeline.NOBODY, () -> network.breakOff(node));
      }
      case BREAK ->
          others(node, true).filter(i -> isStruck[i]).forEach(i -> network.breakOff(node, i));
      case OUTAGE -> {
        time.standStillForGood(node);
        others(node, true).forEach(other -> network.cutForGood(node, other));
      }
      case SHORT_CUT -> others(node, false).forEach(other -> network.cut(node, other, shortly));
      case CUT -> others(node, false).forEach(other -> network.cutForGood(node, other));
    }
  }

  private IntStream others(int node, boolean struckOnes) {
    return IntStream.range(0, nodes)
        .filter(other -> other != node && (struckOnes || !isStruck[other]));
  }

  /** Runs to the end: every rank has got all, or has failed, or is gone. */
  void run() {
    while (!IntStream.range(0, ranks).allMatch(this::hasEnded)) {
      if (!time.step() || time.now() - time.lastWork() > STUCK_NANOS) {
        throw new AssertionError("nothing more happens: " + describe());
      }
      if (bug != null) {
        throw new AssertionError(bug);
      }
    }
    for (int rank = 0; rank < ranks; rank++) {
      assertEnd(rank, world.nodeOf(rank));
    }
    for (Peers each : peers) {
      assertThat(each.office().mostWaitingBytes())
          .as("bytes that wait for their step")
          .isLessThanOrEqualTo(
              (long) world.mostRanks()
                  * Exchange.room(options.exchange().window())
                  * options.batchSize()
                  * originals.longest());
    }
  }

  private boolean isGone(int node) {
    return isStruck[node] && (trouble == Trouble.KILL || trouble == Trouble.OUTAGE);
  }

  private boolean hasEnded(int rank) {
    return !trainers[rank].isAlive() || isGone(world.nodeOf(rank));
  }

  private void assertEnd(int rank, int node) {
    Failure failure = failures[rank];
    if (hasAll(rank) || (failure == null && isGone(node))) {
      return;
    }
    assertThat(failure).as("why rank %d has ended", rank).isNotNull();
    if (struckAt < 0 || !trouble.isFatal()) {
      throw new AssertionError("rank " + rank + " has failed, and nothing was lost", failure);
    }
    boolean hung = trouble == Trouble.LONG_HANG && isStruck[node];
    assertThat(failedAt[rank] - (hung ? wellAgain : struckAt))
        .as("nanoseconds after which rank %d fails: %s", rank, failure.getMessage())
        .isLessThanOrEqualTo(MOST_FAILING_NANOS);
    assertThat(failure.getMessage()).contains("is lost");
    // One that hung may take any other for lost when it goes on: it has not heard of them.
    if (!hung) {
      boolean isOutside = trouble != Trouble.CUT || !isStruck[node];
      assertThat(IntStream.range(0, nodes).filter(other -> isStruck[other] == isOutside))
          .as("nodes that are lost: %s", failure.getMessage())
          .anyMatch(other -> failure.getMessage().startsWith("node " + other + " "));
    }
  }

  private String describe() {
    StringBuilder text = new StringBuilder(time.state());
    for (int rank = 0; rank < ranks; rank++) {
      text.append("\n  rank ").append(rank).append(" has ").append(received[rank]).append(" of ");
      text.append(due.get(rank).size()).append(", told ").append(network.told(rank));
      text.append(failures[rank] == null ? "" : ", failed: " + failures[rank].getMessage());
    }
    return text.toString();
  }

  /** What has happened, in a number. */
  long digest() {
    return time.digest();
  }

  /** Batches that every rank has received. */
  private int common() {
    return Arrays.stream(received).min().orElseThrow();
  }

  boolean isComplete() {
    return common() == due.getFirst().size();
  }

  /** The state after the batches that every rank has received. */
  ReadState state() {
    Due next = due.getFirst().get(common());
    return loaders[0].stateAt(next.epoch, next.step());
  }

  /** Counts what every rank has received in those batches, by epoch and sample. */
  void count(int[][] times) {
    for (List<Due> each : due) {
      for (Due batch : each.subList(0, common())) {
        for (PlanStep.Deliver place : batch.places) {
          if (!place.repeat()) {
            times[(int) batch.epoch][(int) place.sample()]++;
          }
        }
      }
    }
  }

  /** Ends all threads and gives all memory back. */
  @Override
  public void close() {
    isEnding = true;
    network.end();
    time.wakeAll();
    for (Thread trainer : trainers) {
      if (trainer != null) {
        trainer.interrupt();
      }
    }
    while (Arrays.stream(trainers).anyMatch(each -> each != null && each.isAlive())) {
      step();
    }
    for (int node = 0; node < nodes; node++) {
      Loader loader = loaders[node];
      if (loader != null) {
        Thread closing = time.threads(node).unstarted("close", loader::close);
        closing.start();
        while (closing.isAlive()) {
          step();
        }
      }
      if (peers[node] != null) {
        peers[node].office().close();
      }
    }
  }

  private void step() {
    if (!time.step()) {
      throw new IllegalStateException("threads do not end: " + time.state());
    }
  }
}
