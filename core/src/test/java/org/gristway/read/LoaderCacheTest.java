package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.gristway.Failure.Kind;
import org.gristway.dataset.Dataset;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.Caching;
import org.gristway.plan.ReadState;
import org.gristway.plan.World;
import org.gristway.plan.policy.ClairvoyantPolicy;
import org.gristway.plan.policy.LocalityPolicy;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What policies keep from epoch to epoch is not read again, and what is lost of it is. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderCacheTest {

  static final List<String> POLICIES = LoaderContract.CACHING;

  private static final int SAMPLES = 240;
  private static final int EPOCHS = 4;
  private static final int BATCH = 8;

  @TempDir static Path shared;
  private static Originals originals;
  private static LoaderOptions options;

  @TempDir Path disk;
  private final List<String> notices = Collections.synchronizedList(new ArrayList<>());
  private final Remains before = Remains.now();

  @BeforeAll
  static void pack() {
    Random random = new Random(Seeds.of("LoaderCacheTest"));
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < SAMPLES; i++) {
      tree.put("sample" + i, Trees.bytes(random, 1 + random.nextInt(3000)));
    }
    originals = Originals.of(Packs.pack(tree, shared.resolve("dataset")));
    options =
        LoaderOptions.DEFAULT
            .withExtentBytes(16 << 10)
            .withMemory(4 * originals.bytes())
            .withBatchSize(BATCH)
            .withEpochs(EPOCHS);
  }

  @BeforeEach
  void nothing_is_there() {
    assertThat(disk).isEmptyDirectory();
  }

  @AfterEach
  void nothing_is_left() {
    before.assertNoMore();
    assertThat(Remains.descriptors(disk)).isEmpty();
    assertThat(disk).isEmptyDirectory();
  }

  private Loader open(LoaderOptions with) {
    return Loader.open(Dataset.open(originals.path()), with, Beginning.NEW_RUN, notices::add);
  }

  /** Little memory, and a disk for everything. */
  private LoaderOptions onDisk(String policy) {
    return options
        .withPolicy(policy)
        .withMemory(64 << 10)
        .withCache(new Cache(0, 2 * originals.bytes(), disk));
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void what_fits_into_memory_is_read_once_in_the_whole_run(String policy) {
    try (Loader loader = open(options.withPolicy(policy))) {
      Received received = new Received(originals);
      for (int epoch = 0; epoch < EPOCHS; epoch++) {
        received.addEpoch(loader);
        received.ofEpoch(epoch).assertEachOnce();
        EpochReport report = loader.report(epoch);
        assertThat(report.storageReads()).isEqualTo(epoch == 0 ? SAMPLES : 0);
        assertThat(report.fetched()).isEqualTo(epoch == 0 ? 0 : SAMPLES);
        assertThat(report.fetchedBytes()).isEqualTo(epoch == 0 ? 0 : originals.bytes());
        assertThat(report.fallBacks()).isZero();
        assertThat(report.peakResidentBytes()).isLessThanOrEqualTo(loader.memoryBytes());
      }
      assertThat(loader.counter(ReadCounter.KEPT)).isGreaterThanOrEqualTo(SAMPLES);
      assertThat(loader.counter(ReadCounter.FETCHED)).isEqualTo((EPOCHS - 1L) * SAMPLES);
    }
    assertThat(notices).isEmpty();
  }

  /** What a rank has kept is there for the others one epoch later, once it has come so far. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4})
  void ranks_of_a_node_fetch_what_another_has_kept(int ranks) {
    for (String policy : POLICIES) {
      try (Loader loader = open(options.withPolicy(policy).withRanks(ranks))) {
        Received received = new Received(originals);
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
          received.addSteps(loader, loader.steps(epoch));
          received.ofEpoch(epoch).assertEachOnce();
          EpochReport report = loader.report(epoch);
          assertThat(report.fetched() + report.storageReads()).isEqualTo(SAMPLES);
          if (epoch > 0) {
            assertThat(report.storageReads()).as(policy).isEqualTo(report.fallBacks());
            assertThat(report.fetched()).as(policy).isPositive();
          }
        }
        if (policy.equals(LocalityPolicy.NAME)) {
          assertThat(loader.report(2).storageReads()).as("all is kept since the first").isZero();
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"clairvoyant", "clairvoyant-next-use"})
  void what_memory_does_not_hold_is_kept_on_the_disk(String policy) {
    try (Loader loader = open(onDisk(policy))) {
      Received received = new Received(originals).addEpoch(loader);
      assertThat(disk).isEmptyDirectory();
      assertThat(Remains.descriptors(disk)).hasSize(1);
      for (int epoch = 1; epoch < EPOCHS; epoch++) {
        received.addEpoch(loader);
        received.ofEpoch(epoch).assertEachOnce();
        assertThat(loader.report(epoch).storageBytes()).isZero();
        assertThat(loader.report(epoch).peakResidentBytes()).isLessThanOrEqualTo(64 << 10);
      }
    }
    assertThat(notices).isEmpty();
  }

  @Test
  void what_is_damaged_on_the_disk_is_read_again_and_comes_right() throws Exception {
    try (Loader loader = open(onDisk(ClairvoyantPolicy.NAME))) {
      Received received = new Received(originals).addEpoch(loader);
      Ahead.awaitIdle();
      try (RandomAccessFile file =
          new RandomAccessFile(Remains.descriptors(disk).getFirst().toFile(), "rw")) {
        file.write(new byte[(int) file.length()]);
      }
      received.addEpoch(loader);
      received.ofEpoch(1).assertEachOnce();
      assertThat(loader.report(1).fallBacks()).isPositive();
      assertThat(loader.report(1).storageReads()).isEqualTo(loader.report(1).fallBacks());
      assertThat(received.damaged()).isZero();
    }
    assertThat(notices).isEmpty();
  }

  @Test
  void a_disk_that_cannot_be_written_is_told_once_and_all_comes_from_the_storage() {
    LoaderOptions broken =
        onDisk(ClairvoyantPolicy.NAME).withCache(new Cache(0, originals.bytes(), Path.of("/proc")));
    try (Loader loader = open(broken)) {
      Received received = new Received(originals).addEpoch(loader).addEpoch(loader);
      received.ofEpoch(1).assertEachOnce();
      assertThat(loader.report(1).fallBacks()).isPositive();
    }
    assertThat(notices).singleElement().asString().contains("/proc");
  }

  /** Two nodes that can ask each other, each with a rank. */
  @ParameterizedTest
  @FieldSource("POLICIES")
  void nodes_fetch_what_another_has_kept(String policy) {
    Loader[] loaders = new Loader[2];
    AtomicInteger answered = new AtomicInteger();
    PeerCaches peers =
        (node, sample, tier, target) -> {
          boolean isThere = loaders[node].copyKept(sample, tier, target);
          answered.addAndGet(isThere ? 1 : 0);
          return isThere;
        };
    LoaderOptions ofNode = options.withPolicy(policy);
    for (int node = 0; node < 2; node++) {
      Dataset dataset = Dataset.open(originals.path());
      Beginning later = new Beginning(null, null, null, 0); // when both are there
      LoaderOptions own = ofNode.withWorld(new World(2, 2, node));
      loaders[node] = Loader.open(dataset, own, later, null, peers, Threads.PLATFORM, notices::add);
    }
    loaders[0].start(1);
    loaders[1].start(1);
    try (Loader one = loaders[0];
        Loader other = loaders[1]) {
      Received received = new Received(originals);
      for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (long step = 0; step < one.steps(epoch); step++) {
          received.add(one.next(0)).add(other.next(1));
        }
        received.ofEpoch(epoch).assertEachOnce();
        long fetched = one.report(epoch).fetched() + other.report(epoch).fetched();
        long read = one.report(epoch).storageReads() + other.report(epoch).storageReads();
        assertThat(fetched + read).isEqualTo(SAMPLES);
      }
      assertThat(answered.get()).isPositive();
    }
  }

  @Test
  void a_peer_that_sends_something_else_or_nothing_is_passed_over() {
    for (boolean answers : List.of(true, false)) {
      PeerCaches odd = (_, _, _, _) -> answers;
      LoaderOptions half = options.withPolicy(ClairvoyantPolicy.NAME).withWorld(new World(2, 2, 0));
      Dataset dataset = Dataset.open(originals.path());
      try (Loader loader =
          Loader.open(
              dataset, half, Beginning.NEW_RUN, null, odd, Threads.PLATFORM, notices::add)) {
        Received received = new Received(originals);
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
          loader.epoch(0).forEach(received::add);
        }
        assertThat(received.damaged()).isZero();
        assertThat(loader.counter(ReadCounter.FALL_BACKS)).isPositive();
      }
    }
  }

  @Test
  void a_closed_loader_answers_nobody() {
    Loader loader = open(options.withPolicy(LocalityPolicy.NAME));
    new Received(originals).addEpoch(loader);
    try (Arena arena = Arena.ofConfined()) {
      long length = originals.length(0);
      assertThat(loader.copyKept(0, Caching.MEMORY, arena.allocate(length))).isTrue();
      assertThat(loader.copyKept(0, Caching.DISK, arena.allocate(length))).isFalse();
      loader.close();
      assertThat(loader.copyKept(0, Caching.MEMORY, arena.allocate(length))).isFalse();
    }
  }

  @Test
  void a_run_that_goes_on_fetches_nothing_that_was_never_kept_and_then_falls_back() {
    LoaderOptions with = options.withPolicy(ClairvoyantPolicy.NAME);
    Received whole = new Received(originals);
    Received parts = new Received(originals);
    String state;
    try (Loader loader = open(with)) {
      for (int epoch = 0; epoch < EPOCHS; epoch++) {
        whole.addEpoch(loader);
      }
    }
    try (Loader loader = open(with)) {
      parts.addEpoch(loader).addSteps(loader, 10);
      state = loader.state().toString();
    }
    try (Loader loader = Loader.open(originals.path(), with, ReadState.parse(state))) {
      parts.addEpoch(loader).addEpoch(loader).addEpoch(loader);
      assertThat(loader.report(1).fetched() + loader.report(1).fallBacks()).isZero();
      assertThat(loader.report(2).fallBacks()).isEqualTo(10L * BATCH);
      assertThat(loader.report(2).fetched()).isEqualTo(SAMPLES - 10L * BATCH);
    }
    assertThat(parts.inOrder()).isEqualTo(whole.inOrder());
  }

  @Test
  void a_cache_is_refused_without_a_folder_or_a_policy_that_uses_it() throws IOException {
    assertFails(Kind.WRONG_CALL, () -> new Cache(0, 1, null), "folder");
    assertFails(Kind.WRONG_CALL, () -> new Cache(0, -1, disk), "-1");
    Path missing = disk.resolve("missing");
    assertFails(
        Kind.WRONG_CALL,
        () ->
            open(options.withPolicy(LocalityPolicy.NAME).withCache(new Cache(0, 1, missing)))
                .close(),
        "missing");
    assertFails(
        Kind.WRONG_CALL,
        () -> open(options.withPolicy("unbounded").withCache(new Cache(0, 1, disk))).close(),
        "unbounded");
    assertFails(
        Kind.WRONG_CALL,
        () ->
            open(options.withPolicy(LocalityPolicy.NAME).withCache(new Cache(1, 0, null))).close(),
        "locality");
    assertThat(Files.exists(missing)).isFalse();
  }

  /** Extents that are cut at the borders of ranks in one epoch are not in another. */
  @ParameterizedTest
  @ValueSource(strings = {"redirect", "chunk-shuffle"})
  void extents_that_fit_are_read_once_in_the_whole_run(String policy) {
    for (int ranks = 1; ranks <= 4; ranks++) {
      long room = 2 * originals.bytes() + 8192L * originals.count();
      for (Cache cache :
          List.of(
              new Cache(room, 0, null),
              new Cache(0, room, disk),
              new Cache(originals.bytes() / 3, room, disk))) {
        assertReadOnce(ofExtents(cache).withPolicy(policy).withRanks(ranks));
      }
    }
    assertThat(notices).isEmpty();
  }

  private static LoaderOptions ofExtents(Cache cache) {
    return options.withMemory(256 << 10).withExtentBytes(8 << 10).withCache(cache);
  }

  private void assertReadOnce(LoaderOptions with) {
    try (Loader loader = open(with)) {
      Received received = new Received(originals);
      for (int epoch = 0; epoch < EPOCHS; epoch++) {
        received.addSteps(loader, loader.steps(epoch));
        received.ofEpoch(epoch).assertEachOnce();
        assertThat(received.ofEpoch(epoch).inOrder())
            .isEqualTo(Received.planned(originals, with.withCache(Cache.NONE), epoch));
        EpochReport report = loader.report(epoch);
        assertThat(report.peakResidentBytes()).isLessThanOrEqualTo(loader.memoryBytes());
        assertThat(report.fetched()).isLessThan(loader.cuts().count() + with.ranks());
      }
      // A rank may be two epochs ahead of another by what it reads ahead, and never three.
      for (long epoch = with.ranks() == 1 ? 1 : EPOCHS - 1; epoch < EPOCHS; epoch++) {
        assertThat(loader.report(epoch).storageBytes()).as("%s", with).isZero();
        assertThat(loader.report(epoch).fetched()).isPositive();
      }
    }
  }

  @Test
  void what_does_not_fit_is_read_again_and_nothing_else() {
    long room = originals.bytes() / 2;
    try (Loader loader = open(ofExtents(new Cache(room / 2, room / 2, disk)))) {
      Received received = new Received(originals);
      for (int epoch = 0; epoch < EPOCHS; epoch++) {
        received.addEpoch(loader);
        received.ofEpoch(epoch).assertEachOnce();
        if (epoch > 0) {
          long fetched = loader.report(epoch).fetched();
          // Neighbours have a page in common, which is kept with both.
          assertThat(loader.report(epoch).fetchedBytes())
              .isBetween(room - (32 << 10), room + 8192 * fetched);
          assertThat(fetched + loader.report(epoch).storageReads())
              .isEqualTo(loader.cuts().count());
        }
      }
    }
  }

  @Test
  void an_extent_that_is_damaged_in_the_cache_comes_right_and_is_kept_anew() throws Exception {
    LoaderOptions with = ofExtents(new Cache(0, 2 * originals.bytes(), disk)).withEpochs(5);
    try (Loader loader = open(with)) {
      Received received = new Received(originals).addEpoch(loader);
      Ahead.awaitIdle();
      try (RandomAccessFile file =
          new RandomAccessFile(Remains.descriptors(disk).getFirst().toFile(), "rw")) {
        file.write(new byte[(int) file.length()]);
      }
      // What was read ahead of that is found damaged an epoch later.
      for (int epoch = 1; epoch < 5; epoch++) {
        received.addEpoch(loader);
        received.ofEpoch(epoch).assertEachOnce();
      }
      assertThat(received.damaged()).isZero();
      assertThat(loader.report(1).rereadBytes()).isPositive();
      assertThat(loader.report(4).storageBytes()).isZero();
    }
    assertThat(notices).isEmpty();
  }
}
