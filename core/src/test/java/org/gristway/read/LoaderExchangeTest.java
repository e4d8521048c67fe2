package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.handover.Batch;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.Exchange;
import org.gristway.plan.Homes;
import org.gristway.plan.ReadState;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.ChunkShufflePolicy;
import org.gristway.plan.policy.RedirectPolicy;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Ranks that push samples to each other, all of them in one process. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderExchangeTest {

  static final List<String> POLICIES = List.of(ChunkShufflePolicy.NAME, RedirectPolicy.NAME);

  private static final int EXTENT = 8 << 10;

  @TempDir static Path folder;
  private static Originals originals;

  private final List<String> notices = Collections.synchronizedList(new ArrayList<>());

  @BeforeAll
  static void pack() {
    originals = Originals.of(packed("dataset"));
  }

  /** Some samples are larger than most frames. */
  private static Path packed(String name) {
    Random random = new Random(Seeds.of("LoaderExchangeTest"));
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < 180; i++) {
      int size = i % 20 == 0 ? 3 * EXTENT : 1 + random.nextInt(3000);
      tree.put("folder" + i % 3 + "/sample" + i, Trees.bytes(random, size));
    }
    return Packs.pack(tree, folder.resolve(name));
  }

  private static LoaderOptions anyOptions(Random random, String policy) {
    Tail tail = Tail.values()[random.nextInt(3)];
    double[] shares = {0.1, 0.5, 1};
    double share = shares[random.nextInt(3)];
    Homes homes = share == 1 ? Homes.values()[random.nextInt(3)] : Homes.AFRESH;
    Exchange exchange = new Exchange(share, 1 + random.nextInt(4), homes);
    return LoaderContract.anyOptions(random, policy, tail, 2 + random.nextInt(4))
        .withExchange(exchange);
  }

  private static LoaderOptions options(int ranks) {
    return LoaderOptions.DEFAULT
        .withExtentBytes(EXTENT)
        .withMemory(12L * EXTENT * ranks)
        .withBatchSize(8)
        .withRanks(ranks)
        .withExchange(Exchange.of(1));
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void each_sample_comes_once_per_epoch_as_planned_within_the_budget(String policy) {
    Random random = new Random(Seeds.of("each_sample_comes_once_as_planned"));
    for (int i = 0; i < Thorough.count(12, 300); i++) {
      LoaderContract.assertKept(originals, anyOptions(random, policy), 3);
    }
  }

  @Test
  void what_is_pushed_is_counted() {
    try (Loader loader = Loader.open(originals.path(), options(3).withEpochs(2))) {
      new Received(originals).addSteps(loader, loader.steps(0) + loader.steps(1));
      long pushed = loader.counter(ReadCounter.PUSHED);
      assertThat(pushed).isBetween(2L * 180 / 2, 2L * 180);
      assertThat(loader.counter(ReadCounter.RECEIVED)).isEqualTo(pushed);
      assertThat(loader.counter(ReadCounter.PUSHED_BYTES)).isBetween(1L, 2 * originals.bytes());
      assertThat(loader.counter(ReadCounter.LATE)).isBetween(0L, pushed);
    }
  }

  @Test
  void what_waits_for_its_step_is_a_level() {
    try (PostOffice post = PostOffice.alone(2, 2)) {
      LoaderOptions options = options(2).withEpochs(1);
      long seen = 0;
      try (Loader loader =
          Loader.open(
              Dataset.open(originals.path()), options, Beginning.NEW_RUN, post, notices::add)) {
        Received received = new Received(originals);
        for (long step = 0; step < loader.steps(0); step++) {
          received.addSteps(loader, 1);
          seen = Math.max(seen, loader.counter(ReadCounter.WAITING_BYTES));
        }
        assertThat(loader.counter(ReadCounter.WAITING_BYTES)).isEqualTo(post.waitingBytes());
      }
      assertThat(seen).isBetween(1L, post.mostWaitingBytes());
    }
  }

  @Test
  void batches_of_more_steps_than_are_pushed_ahead_hold_nobody_up() {
    Random random = new Random(Seeds.of("batches_of_more_steps"));
    for (int i = 0; i < 10; i++) {
      // With little to push, most steps end without a push behind them.
      LoaderOptions few =
          options(2)
              .withExchange(new Exchange(0.1, 1))
              .withSeed(random.nextLong())
              .withBatchSize(2)
              .withEpochs(1);
      Beginning fourAtOnce = new Beginning(null, null, null, 4);
      Received received = new Received(originals);
      try (Loader loader =
          Loader.open(Dataset.open(originals.path()), few, fourAtOnce, notices::add)) {
        for (long step = 0; step < loader.steps(0); step += 4) {
          for (int rank = 0; rank < 2; rank++) {
            received.add(loader.next(rank));
          }
        }
      }
      received.assertEachOnce();
    }
  }

  @Test
  void ranks_on_nodes_of_their_own_get_what_they_would_get_on_one() {
    int ranks = 4;
    LoaderOptions together = options(ranks);
    Received expected = new Received(originals);
    try (Loader loader = Loader.open(originals.path(), together)) {
      expected.addSteps(loader, loader.steps(0) + 3);
    }
    Received found = new Received(originals);
    try (PostOffice post = PostOffice.alone(ranks, together.exchange().window())) {
      List<Loader> loaders = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        LoaderOptions alone =
            together.withWorld(new World(ranks, ranks, rank)).withMemory(together.memory() / ranks);
        loaders.add(
            Loader.open(
                Dataset.open(originals.path()), alone, Beginning.NEW_RUN, post, notices::add));
      }
      long steps = loaders.getFirst().steps(0) + 3;
      for (long step = 0; step < steps; step++) {
        for (int rank = 0; rank < ranks; rank++) {
          found.add(loaders.get(rank).next(rank));
        }
      }
      loaders.forEach(Loader::close);
    }
    assertThat(found.inOrder()).isEqualTo(expected.inOrder());
  }

  @Test
  void a_pushed_sample_of_other_content_ends_the_run() {
    TreeMap<String, byte[]> other = new TreeMap<>();
    try (Dataset dataset = Dataset.open(originals.path())) {
      for (Sample sample : dataset) {
        byte[] bytes = dataset.read(sample);
        bytes[0] ^= 1;
        other.put(sample.key(), bytes);
      }
    }
    List<Path> paths = List.of(originals.path(), Packs.pack(other, folder.resolve("other")));
    try (PostOffice post = PostOffice.alone(2, 2)) {
      List<Loader> loaders = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        LoaderOptions alone = options(2).withWorld(new World(2, 2, rank));
        loaders.add(
            Loader.open(
                Dataset.open(paths.get(rank)), alone, Beginning.NEW_RUN, post, notices::add));
      }
      try {
        assertFails(
            Kind.DAMAGED,
            () -> {
              for (long step = 0; step < loaders.getFirst().steps(0); step++) {
                new Received(originals).add(loaders.getFirst().next(0));
                loaders.getLast().next(1).close();
              }
            },
            "fails its checksum",
            "pushed",
            "gristway info");
      } finally {
        loaders.forEach(Loader::close);
      }
    }
  }

  @Test
  void a_state_goes_on_in_the_same_and_in_any_other_world() {
    Random random = new Random(Seeds.of("a_state_goes_on"));
    for (int i = 0; i < Thorough.count(10, 200); i++) {
      LoaderOptions first = anyOptions(random, RedirectPolicy.NAME).withTail(Tail.SHORT);
      Received received = new Received(originals);
      ReadState state;
      try (Loader loader = Loader.open(originals.path(), first)) {
        received.addSteps(loader, random.nextLong(loader.steps(0)));
        state = loader.state();
      }
      List<Received.Place> planned = Received.planned(originals, first, 0);
      try (Loader loader = Loader.open(originals.path(), first, state)) {
        Received same = new Received(originals);
        same.addSteps(loader, loader.steps(0) - loader.firstStep());
        assertThat(Stream.concat(received.inOrder().stream(), same.inOrder().stream()).toList())
            .as("%s", first)
            .isEqualTo(planned);
      }
      LoaderOptions second = anyOptions(random, RedirectPolicy.NAME).withTail(Tail.SHORT);
      try (Loader loader = Loader.open(originals.path(), second.withSeed(first.seed()), state)) {
        received.addSteps(loader, loader.steps(0) - loader.firstStep());
      }
      received.ofEpoch(0).assertEachOnce();
    }
  }

  @Test
  void a_damaged_sample_is_missed_by_whoever_would_have_had_it() {
    Originals damaged = Originals.of(packed("damaged"));
    damaged.flip(7, 0);
    damaged.flip(100, 0);
    LoaderOptions options = options(3).withEpochs(1).withMaxDamage(0.02);
    Received received = new Received(damaged);
    try (Loader loader =
        Loader.open(Dataset.open(damaged.path()), options, Beginning.NEW_RUN, notices::add)) {
      received.addSteps(loader, loader.steps(0));
    }
    received.assertEachOnce(sample -> sample != 7 && sample != 100);
    assertThat(received.damaged()).isEqualTo(2);
    assertThat(received.due()).isEqualTo(dueAsPlanned(damaged, options));
    assertThat(notices).hasSize(2);
  }

  private static List<Received.Place> dueAsPlanned(Originals dataset, LoaderOptions options) {
    return Received.planned(dataset, options, 0).stream().map(Received.Place::due).toList();
  }

  @Test
  void strict_reading_fails_for_every_rank() {
    Originals damaged = Originals.of(packed("strict"));
    damaged.flip(7, 0);
    try (Loader loader = Loader.open(damaged.path(), options(3).withStrict(true))) {
      assertFails(
          Kind.DAMAGED, () -> new Received(damaged).addSteps(loader, loader.steps(0)), "sample");
      for (int rank = 0; rank < 3; rank++) {
        int each = rank;
        assertFails(
            Kind.DAMAGED,
            () -> {
              for (long step = 0; step < loader.steps(0); step++) {
                loader.next(each).close();
              }
            },
            "sample");
      }
    }
  }

  @Test
  void a_lost_node_ends_all_waiting() throws InterruptedException {
    LoaderOptions first = options(2).withWorld(new World(2, 2, 0)).withMemory(12L * EXTENT);
    try (PostOffice post = PostOffice.alone(2, 2);
        Loader loader =
            Loader.open(
                Dataset.open(originals.path()), first, Beginning.NEW_RUN, post, notices::add)) {
      Ahead.awaitIdle(); // rank 1 never comes
      post.fail(Failure.environment("node 1 at somewhere is lost"));
      assertFails(
          Kind.ENVIRONMENT,
          () -> {
            for (long step = 0; step < loader.steps(0); step++) {
              loader.next(0).close();
            }
          },
          "node 1 at somewhere is lost");
    }
  }

  @Test
  void closing_ends_ranks_that_wait_for_each_other() throws InterruptedException {
    try (Loader loader = Loader.open(originals.path(), options(3))) {
      for (Batch batch : List.of(loader.next(0), loader.next(0))) {
        batch.close(); // the others are not asked for anything
      }
      Ahead.awaitIdle();
    }
  }

  @Test
  void ranks_elsewhere_are_refused_without_a_way_to_them() {
    assertFails(
        Kind.WRONG_CALL,
        () -> Loader.open(originals.path(), options(4).withWorld(new World(4, 2, 0))),
        "2 of 4 ranks are on other nodes");
  }

  @Test
  void several_steps_at_once_come_as_planned() {
    for (int atOnce : new int[] {2, 3, 7}) {
      LoaderOptions options = options(3).withEpochs(2);
      Beginning several = new Beginning(null, null, null, atOnce);
      Received received = new Received(originals);
      try (Loader loader =
          Loader.open(Dataset.open(originals.path()), options, several, notices::add)) {
        received.addSteps(loader, 2 * Math.ceilDiv(loader.steps(0), atOnce));
      }
      for (int epoch = 0; epoch < 2; epoch++) {
        List<Long> planned =
            Received.planned(originals, options, epoch).stream()
                .map(Received.Place::sample)
                .sorted()
                .toList();
        List<Long> found =
            received.ofEpoch(epoch).places().stream().map(Received.Place::sample).sorted().toList();
        assertThat(found).isEqualTo(planned);
      }
    }
  }

  @Test
  void policies_that_cannot_exchange_refuse_to() {
    for (String policy : List.of("sample-order", "redirect-position", "unbounded")) {
      assertFails(
          Kind.WRONG_CALL,
          () -> Loader.open(originals.path(), options(2).withPolicy(policy)),
          policy,
          "exchange");
    }
  }

  @Test
  void a_rank_that_goes_back_is_refused() {
    try (PostOffice post = PostOffice.alone(2, 2)) {
      post.goOn(0, 1, 5);
      post.goOn(0, 1, 5);
      post.goOn(0, 2, 0);
      assertFails(Kind.WRONG_CALL, () -> post.goOn(0, 1, 6), "rank 0 goes back to step 6");
    }
  }
}
