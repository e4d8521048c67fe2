package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.LongStream;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.chunk.ChunkFormat;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.ReadState;
import org.gristway.plan.Tail;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * Damage never changes a plan: its places are filled, flagged, counted and named. What is not there
 * at all, or not of the dataset, is no damage: it ends the run.
 */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderDamageTest {

  static final List<String> POLICIES = LoaderContract.POLICIES;

  private static final int SAMPLES = 120;
  private static final int EXTENT = 8 << 10;
  private static final LoaderOptions OPTIONS =
      LoaderOptions.DEFAULT
          .withExtentBytes(EXTENT)
          .withMemory(12 * EXTENT)
          .withBatchSize(10)
          .withMaxDamage(1);

  @TempDir static Path shared;
  private static Path sound;

  @TempDir Path folder;
  private Originals originals;
  private final Random random = new Random(Seeds.of("LoaderDamageTest"));
  private final Set<Long> damaged = new HashSet<>();
  private final List<String> notices = Collections.synchronizedList(new ArrayList<>());

  @BeforeAll
  static void pack() {
    Random random = new Random(SAMPLES);
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < SAMPLES; i++) {
      // Every tenth is larger than a frame.
      int size = i % 10 == 0 ? 2 * EXTENT + random.nextInt(EXTENT) : 1 + random.nextInt(3000);
      tree.put("folder" + i % 3 + "/sample" + i, Trees.bytes(random, size));
    }
    sound = Packs.pack(tree, shared.resolve("dataset"));
  }

  @BeforeEach
  void copy() {
    originals = Originals.of(Trees.write(Trees.read(sound), folder.resolve("dataset")));
  }

  private Loader open(LoaderOptions options) {
    return Loader.open(Dataset.open(originals.path()), options, Beginning.NEW_RUN, notices::add);
  }

  private void flip(long sample) {
    originals.flip(sample, random.nextInt(originals.length(sample)));
    damaged.add(sample);
  }

  private long anySample() {
    return random.nextInt(SAMPLES);
  }

  private long aLargeSample() {
    return random
        .longs(0, SAMPLES)
        .filter(sample -> originals.length(sample) > 2 * EXTENT)
        .findFirst()
        .orElseThrow();
  }

  /** Reads two epochs and checks that damage is treated as it should. */
  private void assertDamageIsPassedOver(LoaderOptions options) {
    notices.clear();
    Received received = new Received(originals);
    long counted = 0;
    try (Loader loader = open(options.withEpochs(2))) {
      for (int epoch = 0; epoch < 2; epoch++) {
        received.addEpoch(loader);
        Received ofEpoch = received.ofEpoch(epoch);
        assertThat(loader.report(epoch).damaged()).isEqualTo(ofEpoch.damaged());
        assertThat(loader.report(epoch).repeated()).isEqualTo(ofEpoch.repeats());
        assertThat(loader.report(epoch).samples()).isEqualTo(SAMPLES - damaged.size());
        counted += ofEpoch.damaged();
        assertPassedOver(ofEpoch, options, epoch);
      }
      assertThat(loader.counter(ReadCounter.DAMAGED)).isEqualTo(counted);
    }
    assertNamed();
  }

  private void assertPassedOver(Received epoch, LoaderOptions options, long number) {
    epoch.assertEachOnce(sample -> !damaged.contains(sample));
    List<Received.Place> planned = Received.planned(originals, options, number);
    assertThat(epoch.due())
        .as("invariant 3")
        .isEqualTo(planned.stream().map(Received.Place::due).toList());
    List<Received.Place> places = epoch.inOrder();
    for (int i = 0; i < places.size(); i++) {
      Received.Place place = places.get(i);
      assertThat(place.damaged()).isEqualTo(damaged.contains(place.planned()));
      assertThat(place.repeat()).isEqualTo(place.damaged() || planned.get(i).repeat());
      assertThat(place.sample())
          .isEqualTo(place.damaged() ? nearestGood(places, i).sample() : place.planned());
    }
  }

  /** The one before, if two are as near. */
  private static Received.Place nearestGood(List<Received.Place> places, int index) {
    Received.Place bad = places.get(index);
    return places.stream()
        .filter(each -> each.step() == bad.step() && each.rank() == bad.rank() && !each.damaged())
        .min(
            Comparator.comparingInt(
                each ->
                    2 * Math.abs(each.position() - bad.position())
                        + (each.position() > bad.position() ? 1 : 0)))
        .orElseThrow();
  }

  /** Each damaged sample is named with its chunk, where they are few, and no other. */
  private void assertNamed() {
    List<String> named = notices.stream().filter(line -> line.contains("sample '")).toList();
    for (long sample : damaged.size() > DamageLimit.NAMED ? Set.<Long>of() : damaged) {
      assertThat(named)
          .anyMatch(
              line ->
                  line.contains(originals.chunk(sample).toString())
                      && line.contains("'" + originals.key(sample) + "'"));
    }
    assertThat(named)
        .allMatch(
            line ->
                damaged.stream()
                    .anyMatch(sample -> line.contains("'" + originals.key(sample) + "'")));
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void a_flipped_byte_leaves_out_its_sample_only(String policy) {
    for (int i = 0; i < Thorough.count(3, 50); i++) {
      long sample = i == 0 ? aLargeSample() : anySample();
      int at = random.nextInt(originals.length(sample));
      originals.flip(sample, at);
      damaged.add(sample);
      assertDamageIsPassedOver(OPTIONS.withPolicy(policy));
      originals.flip(sample, at);
      damaged.clear();
    }
    assertDamageIsPassedOver(OPTIONS.withPolicy(policy));
    assertThat(notices).isEmpty();
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void several_damaged_samples_are_all_left_out(String policy) {
    for (int i = 0; i < 12; i++) {
      long sample = anySample();
      if (!damaged.contains(sample)) {
        flip(sample);
      }
    }
    LoaderOptions two = OPTIONS.withPolicy(policy).withRanks(2).withMemory(24 * EXTENT);
    // As many as to fill batches with good ones, whatever the order is.
    assertDamageIsPassedOver(two.withBatchSize(30));
    assertDamageIsPassedOver(two.withBatchSize(35).withTail(Tail.PAD));
    assertDamageIsPassedOver(OPTIONS.withPolicy(policy).withBatchSize(40));
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void a_whole_extent_may_be_damaged(String policy) {
    try (Loader loader = open(OPTIONS)) {
      long extent = random.nextLong(loader.cuts().count());
      for (long i = loader.cuts().firstSample(extent);
          i < loader.cuts().firstSample(extent + 1);
          i++) {
        flip(i);
      }
    }
    assertDamageIsPassedOver(OPTIONS.withPolicy(policy).withBatchSize(40));
  }

  private long samplesOf(int chunk) {
    return LongStream.range(0, SAMPLES)
        .filter(sample -> originals.location(sample).chunk() == chunk)
        .count();
  }

  private int chunks() {
    return 1 + originals.location(SAMPLES - 1).chunk();
  }

  @Test
  void a_missing_chunk_is_refused_when_it_is_opened() throws IOException {
    long sample = anySample();
    Path chunk = originals.chunk(sample);
    Files.delete(chunk);
    assertRefused(
        "1 of " + chunks() + " chunks is missing: " + chunk.getFileName(),
        samplesOf(originals.location(sample).chunk()) + " samples; bring it back from a copy");
  }

  @Test
  void many_missing_chunks_are_refused_in_one_line() throws IOException {
    for (int chunk = 0; chunk < chunks(); chunk++) {
      Files.delete(originals.path().resolve(ChunkFormat.fileName(chunk)));
    }
    assertRefused(
        chunks() + " of " + chunks() + " chunks are missing: chunk-000000.gwc, ",
        " and " + (chunks() - 3) + " more",
        SAMPLES + " samples; bring them back from a copy");
  }

  @Test
  void a_chunk_that_is_cut_off_is_refused_when_it_is_opened() throws IOException {
    Path chunk = originals.chunk(anySample());
    cutOff(chunk, Files.size(chunk) - 1);
    assertRefused("1 of " + chunks() + " chunks is cut off", chunk.getFileName().toString());
  }

  /** By everything that reads as training does; what is there can still be had one by one. */
  private void assertRefused(String... named) {
    for (String policy : POLICIES) {
      assertFails(Kind.DAMAGED, () -> open(OPTIONS.withPolicy(policy)), named);
    }
    assertFails(Kind.DAMAGED, () -> AskedLoader.exact(originals.path(), OPTIONS), named);
    assertFails(Kind.DAMAGED, () -> AskedLoader.redirected(originals.path(), OPTIONS), named);
    try (Dataset dataset = Dataset.open(originals.path())) {
      for (Sample sample : dataset) {
        if (isWhole(originals.chunk(sample.id()))) {
          assertThat(dataset.read(sample)).isEqualTo(originals.data(sample.id()));
        }
      }
    }
  }

  private boolean isWhole(Path chunk) {
    try {
      return Files.exists(chunk)
          && Files.size(chunk) == Files.size(sound.resolve(chunk.getFileName()));
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  private static void cutOff(Path file, long length) throws IOException {
    try (RandomAccessFile open = new RandomAccessFile(file.toFile(), "rw")) {
      open.setLength(length);
    }
  }

  /** What has been read or is open may still be read whole; what is not is never made up for. */
  @ParameterizedTest
  @FieldSource("POLICIES")
  void chunks_that_go_while_they_are_read_end_the_run(String policy) throws IOException {
    LoaderOptions options = OPTIONS.withPolicy(policy).withEpochs(3);
    long cut = anySample();
    long deleted = anySample();
    Received received = new Received(originals);
    boolean ended = false;
    try (Loader loader = open(options)) {
      received.add(loader.next(0));
      cutOff(originals.chunk(cut), originals.location(cut).offset());
      Files.deleteIfExists(originals.chunk(deleted));
      try {
        received.addEpoch(loader).addEpoch(loader).addEpoch(loader);
      } catch (Failure failure) {
        ended = true;
        assertThat(failure.kind()).isEqualTo(Kind.DAMAGED);
        assertThat(failure.getMessage())
            .containsAnyOf(originals.chunk(cut).toString(), originals.chunk(deleted).toString());
      }
    }
    assertThat(received.places()).noneMatch(Received.Place::damaged);
    List<Received.Place> order = new ArrayList<>();
    for (int epoch = 0; epoch < 3; epoch++) {
      order.addAll(Received.planned(originals, options, epoch));
    }
    assertThat(received.inOrder()).isEqualTo(order.subList(0, received.places().size()));
    if (policy.equals("redirect") || policy.equals("sample-order")) {
      assertThat(ended).as("nothing of it stays in memory for three epochs").isTrue();
    }
    assertThat(notices).isEmpty();
  }

  /** As after an rsync of another dataset over this one: the same names, the same sizes. */
  @ParameterizedTest
  @FieldSource("POLICIES")
  void a_chunk_of_another_dataset_ends_the_run(String policy) throws IOException {
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < SAMPLES; i++) {
      byte[] bytes = new byte[originals.length(i)];
      random.nextBytes(bytes);
      tree.put(originals.key(i), bytes);
    }
    Path other = Packs.pack(tree, folder.resolve("other"));
    Path chunk = originals.chunk(anySample());
    Files.copy(other.resolve(chunk.getFileName()), chunk, StandardCopyOption.REPLACE_EXISTING);
    try (Loader loader = open(OPTIONS.withPolicy(policy).withEpochs(1))) {
      Received received = new Received(originals);
      assertFails(
          Kind.DAMAGED,
          () -> received.addEpoch(loader),
          chunk + " belongs to another dataset than its snapshot");
      assertThat(received.places()).noneMatch(Received.Place::damaged);
    }
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void more_damage_than_the_limit_ends_the_run_and_names_verify(String policy) {
    // 0.1 % of 120 samples is less than one, and one may be; 5 % are six.
    LoaderOptions usual = OPTIONS.withPolicy(policy).withBatchSize(40).withMaxDamage(0.001);
    flip(1);
    assertDamageIsPassedOver(usual);
    assertFails(Kind.DAMAGED, () -> readEpoch(usual.withMaxDamage(0)), originals.key(1));
    flip(SAMPLES - 1);
    assertFails(
        Kind.DAMAGED,
        () -> readEpoch(usual),
        "2 damaged samples",
        "of the 120 in epoch 0",
        "at most 1",
        "'gristway verify " + originals.path() + "'");
    for (long sample = 20; sample < 60; sample += 10) {
      flip(sample);
    }
    assertDamageIsPassedOver(usual.withMaxDamage(0.05));
    flip(70);
    assertFails(Kind.DAMAGED, () -> readEpoch(usual.withMaxDamage(0.05)), "7 damaged samples");
  }

  private void readEpoch(LoaderOptions options) {
    try (Loader loader = open(options.withEpochs(1))) {
      new Received(originals).addEpoch(loader);
    }
  }

  @Test
  void a_share_that_is_none_is_refused() {
    for (double share : new double[] {-0.1, 1.1, Double.NaN}) {
      assertFails(Kind.WRONG_CALL, () -> OPTIONS.withMaxDamage(share), "0 to 1");
    }
    assertFails(Kind.WRONG_CALL, () -> OPTIONS.withStorageTimeout(Duration.ofSeconds(-1)), "-1");
  }

  @Test
  void a_log_of_much_damage_names_a_few_samples_and_counts_the_rest() {
    for (long sample = 0; sample < SAMPLES; sample += 2) {
      flip(sample);
    }
    readEpoch(OPTIONS.withBatchSize(60));
    // Ten by name, and lines for 11, 20 and 40.
    assertThat(notices).hasSize(13);
    assertThat(notices.subList(0, 10)).allMatch(line -> line.contains("fails its checksum"));
    assertThat(notices.getLast())
        .startsWith("40 samples of epoch 0 are damaged")
        .contains("verify");
  }

  /** The bad bytes are in a frame, the good ones on the disk: as after a read that went wrong. */
  @Test
  void a_bad_read_that_goes_well_the_second_time_is_no_damage() throws InterruptedException {
    LoaderOptions all = OPTIONS.withMemory(4 << 20).withEpochs(1);
    List<Received.Place> order = Received.planned(originals, all, 0);
    long last =
        order.reversed().stream()
            .mapToLong(Received.Place::sample)
            .filter(sample -> originals.length(sample) < EXTENT / 2)
            .findFirst()
            .orElseThrow();
    boolean readAgain = false;
    for (int tries = 0; tries < 10 && !readAgain; tries++) {
      originals.flip(last, 0);
      try (Loader loader = open(all)) {
        Ahead.awaitIdle();
        originals.flip(last, 0);
        new Received(originals).addEpoch(loader).assertEachOnce();
        assertThat(loader.report(0).damaged()).isZero();
        assertThat(loader.report(0).repeated()).isZero();
        readAgain = loader.counter(ReadCounter.REREAD_BYTES) == originals.length(last);
      }
    }
    assertThat(readAgain).isTrue();
    assertThat(notices).isEmpty();
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void strict_reading_fails_at_a_damaged_sample_and_names_it(String policy) {
    long sample = anySample();
    flip(sample);
    Received received = new Received(originals);
    LoaderOptions options = OPTIONS.withPolicy(policy).withStrict(true).withEpochs(1);
    try (Loader loader = open(options)) {
      for (int i = 0; i < 2; i++) {
        assertFails(
            Kind.DAMAGED,
            () -> received.addEpoch(loader),
            originals.chunk(sample).toString(),
            "'" + originals.key(sample) + "'");
      }
    }
    // All batches before are right.
    List<Received.Place> order = Received.planned(originals, options, 0);
    assertThat(received.inOrder()).isEqualTo(order.subList(0, received.places().size()));
    assertThat(received.places()).noneMatch(place -> place.sample() == sample);
    assertThat(order.get(received.places().size()).step())
        .isEqualTo(
            order.stream()
                .filter(place -> place.sample() == sample)
                .findFirst()
                .orElseThrow()
                .step());
    assertThat(notices).isEmpty();
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void a_batch_without_any_good_sample_shows_one_from_elsewhere(String policy) {
    LoaderOptions options = OPTIONS.withPolicy(policy).withBatchSize(4).withEpochs(1);
    List<Received.Place> order = Received.planned(originals, options, 0);
    for (Received.Place place : order.subList(8, 12)) {
      flip(place.sample());
    }
    Received received = new Received(originals);
    try (Loader loader = open(options)) {
      received.addEpoch(loader);
      assertThat(loader.report(0).damaged()).isEqualTo(4);
    }
    received.assertEachOnce(sample -> !damaged.contains(sample));
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void batches_of_one_sample_go_on_past_a_damaged_one(String policy) {
    LoaderOptions options = OPTIONS.withPolicy(policy).withBatchSize(1).withEpochs(1);
    List<Received.Place> order = Received.planned(originals, options, 0);
    flip(order.getFirst().sample());
    flip(order.get(50).sample());
    Received received = new Received(originals);
    try (Loader loader = open(options)) {
      received.addEpoch(loader);
      assertThat(loader.report(0).damaged()).isEqualTo(2);
      assertThat(loader.report(0).samples()).isEqualTo(SAMPLES - 2);
    }
    received.assertEachOnce(sample -> !damaged.contains(sample));
    assertThat(received.due()).isEqualTo(order);
    assertNamed();
  }

  @Test
  void a_dataset_without_any_good_sample_fails() {
    for (long sample = 0; sample < SAMPLES; sample++) {
      flip(sample);
    }
    try (Loader loader = open(OPTIONS)) {
      assertFails(Kind.DAMAGED, () -> loader.next(0), "verify");
    }
  }

  @Test
  void damage_stays_left_out_when_a_run_is_resumed_in_another_world() {
    flip(anySample());
    flip((damaged.iterator().next() + 1) % SAMPLES);
    Received received = new Received(originals);
    ReadState state;
    try (Loader loader = open(OPTIONS)) {
      received.addSteps(loader, 4);
      state = loader.state();
    }
    LoaderOptions two = OPTIONS.withRanks(2).withMemory(24 * EXTENT);
    try (Loader loader =
        Loader.open(Dataset.open(originals.path()), two, Beginning.at(state), notices::add)) {
      received.addEpoch(loader);
    }
    received.assertEachOnce(sample -> !damaged.contains(sample));
  }

  @Test
  void a_notice_is_one_line_whatever_the_key_is() {
    Originals odd =
        Originals.of(
            Packs.pack(
                Trees.of("good", "1", "bad\nkey", "2", "tab\tkey", "3"), folder.resolve("odd")));
    for (long sample = 0; sample < odd.count(); sample++) {
      if (!odd.key(sample).equals("good")) {
        odd.flip(sample, 0);
      }
    }
    try (Loader loader =
        Loader.open(
            Dataset.open(odd.path()), OPTIONS.withEpochs(1), Beginning.NEW_RUN, notices::add)) {
      new Received(odd).addEpoch(loader);
    }
    assertThat(notices).hasSize(2).noneMatch(line -> line.contains("\n") || line.contains("\t"));
  }
}
