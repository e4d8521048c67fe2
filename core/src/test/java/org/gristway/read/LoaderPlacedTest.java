package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.pack.Packs;
import org.gristway.pack.Placer;
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
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Nodes that each have their own chunks and no others, all of them in one process. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderPlacedTest {

  private static final int EXTENT = 8 << 10;
  private static final int SAMPLES = 181;

  @TempDir static Path folder;
  private static Originals originals;

  private final List<String> notices = Collections.synchronizedList(new ArrayList<>());

  /** Some samples are larger than most frames, some are empty. */
  @BeforeAll
  static void place() {
    Random random = new Random(Seeds.of("LoaderPlacedTest"));
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < SAMPLES; i++) {
      int size = i % 20 == 0 ? 3 * EXTENT : i % 15 == 1 ? 0 : random.nextInt(3000);
      tree.put("folder" + i % 3 + "/sample" + i, Trees.bytes(random, size));
    }
    originals = Originals.of(Packs.pack(tree, folder.resolve("dataset")));
    for (int nodes : new int[] {2, 3}) {
      Placer.place(originals.path(), folders(nodes), Progress.NONE);
    }
  }

  private static List<Path> folders(int nodes) {
    return IntStream.range(0, nodes)
        .mapToObj(node -> folder.resolve("node" + node + "of" + nodes))
        .toList();
  }

  private static LoaderOptions options(int ranks, int nodes) {
    World world = new World(ranks, nodes, 0);
    return LoaderOptions.DEFAULT
        .withExtentBytes(EXTENT)
        .withMemory(12L * EXTENT * world.mostRanks())
        .withBatchSize(8)
        .withWorld(world)
        .withExchange(Exchange.of(1).withHomes(Homes.PLACED));
  }

  /** A job whose nodes read their own folders. */
  private final class Job implements AutoCloseable {
    private final World world;
    private final PostOffice post;
    private final List<Loader> loaders = new ArrayList<>();

    Job(LoaderOptions options, @Nullable ReadState state) {
      this.world = options.world();
      this.post = PostOffice.alone(world.ranks(), options.exchange().window());
      for (int node = 0; node < world.nodes(); node++) {
        loaders.add(
            Loader.open(
                Dataset.open(folders(world.nodes()).get(node)),
                options.withWorld(new World(world.ranks(), world.nodes(), node)),
                state == null ? Beginning.NEW_RUN : Beginning.at(state),
                post,
                notices::add));
      }
    }

    Loader first() {
      return loaders.getFirst();
    }

    void addSteps(Received received, long steps) {
      for (long step = 0; step < steps; step++) {
        for (int rank = 0; rank < world.ranks(); rank++) {
          received.add(loaders.get(world.nodeOf(rank)).next(rank));
        }
      }
    }

    @Override
    public void close() {
      loaders.forEach(Loader::close);
      post.close();
    }
  }

  @Test
  void nodes_deliver_every_sample_once_from_their_own_folders() {
    Random random = new Random(Seeds.of("nodes_deliver_every_sample_once"));
    int[][] worlds = {{3, 3}, {2, 2}, {5, 3}, {6, 3}};
    for (int i = 0; i < Thorough.count(16, 300); i++) {
      int[] world = worlds[i % worlds.length];
      // In the last batch one rank has a sample, and the others repeat what another node has.
      int batch = random.nextBoolean() ? 1 + random.nextInt(20) : 180 / world[0];
      LoaderOptions options =
          options(world[0], world[1])
              .withBatchSize(batch)
              .withSeed(random.nextLong())
              .withTail(random.nextBoolean() ? Tail.SHORT : Tail.PAD)
              .withPolicy(random.nextBoolean() ? RedirectPolicy.NAME : ChunkShufflePolicy.NAME)
              .withEpochs(2);
      Received received = new Received(originals);
      try (Job job = new Job(options, null)) {
        job.addSteps(received, job.first().steps(0) + job.first().steps(1));
      }
      assertThat(notices).as("%s", options).isEmpty();
      for (long epoch = 0; epoch < 2; epoch++) {
        received.ofEpoch(epoch).assertEachOnce();
        assertThat(received.ofEpoch(epoch).inOrder())
            .as("%s", options)
            .isEqualTo(Received.planned(originals, options, epoch));
      }
    }
  }

  @Test
  void a_run_goes_on_over_other_folders() {
    Random random = new Random(Seeds.of("a_run_goes_on_over_other_folders"));
    for (int i = 0; i < Thorough.count(4, 100); i++) {
      Received received = new Received(originals);
      ReadState state;
      try (Job job = new Job(options(3, 3), null)) {
        job.addSteps(received, random.nextLong(job.first().steps(0)));
        state = job.first().state();
      }
      try (Job job = new Job(options(4, 2), state)) {
        job.addSteps(received, job.first().steps(0) - job.first().firstStep());
      }
      received.ofEpoch(0).assertEachOnce();
      assertThat(notices).isEmpty();
    }
  }

  @Test
  void a_folder_of_one_node_is_refused_for_anything_else() {
    Path first = folders(3).getFirst();
    LoaderOptions right = options(3, 3);
    for (Exchange exchange : List.of(Exchange.NONE, Exchange.of(1))) {
      assertFails(
          Kind.WRONG_CALL,
          () -> Loader.open(first, right.withExchange(exchange)),
          first.toString(),
          "node 0 of 3",
          "missing",
          "placed homes");
    }
    for (World other : List.of(new World(3, 3, 1), new World(4, 2, 0), World.of(3))) {
      assertFails(
          Kind.WRONG_CALL,
          () -> Loader.open(first, right.withWorld(other)),
          "node 0 of 3",
          "this is node " + other.node() + " of " + other.nodes());
    }
    assertFails(
        Kind.WRONG_CALL, () -> AskedLoader.exact(first, LoaderOptions.DEFAULT), "node 0 of 3");
  }
}
