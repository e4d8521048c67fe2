package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.gristway.Failure.Kind;
import org.gristway.dataset.Dataset;
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

/** Damage never changes a plan: its places are filled, flagged, counted and named. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LoaderDamageTest {

  static final List<String> POLICIES = LoaderContract.POLICIES;

  private static final int SAMPLES = 120;
  private static final int EXTENT = 8 << 10;
  private static final LoaderOptions OPTIONS =
      LoaderOptions.DEFAULT.withExtentBytes(EXTENT).withMemory(12 * EXTENT).withBatchSize(10);

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

  /** Each damaged sample is named with its chunk, and no other. */
  private void assertNamed() {
    for (long sample : damaged) {
      assertThat(notices)
          .anyMatch(
              line ->
                  line.contains(originals.chunk(sample).toString())
                      && line.contains("'" + originals.key(sample) + "'"));
    }
    assertThat(notices)
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

  private void damageChunk(int chunk) {
    for (long sample = 0; sample < SAMPLES; sample++) {
      if (originals.location(sample).chunk() == chunk) {
        damaged.add(sample);
      }
    }
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void a_missing_chunk_leaves_out_its_samples_only(String policy) throws IOException {
    long sample = anySample();
    Files.delete(originals.chunk(sample));
    damageChunk(originals.location(sample).chunk());
    assertDamageIsPassedOver(OPTIONS.withPolicy(policy).withBatchSize(60));
  }

  @ParameterizedTest
  @FieldSource("POLICIES")
  void a_chunk_that_is_cut_off_leaves_out_its_samples_only(String policy) throws IOException {
    long sample = anySample();
    cutOff(originals.chunk(sample), originals.location(sample).offset() + 1);
    damageChunk(originals.location(sample).chunk());
    assertDamageIsPassedOver(OPTIONS.withPolicy(policy).withBatchSize(60));
  }

  private static void cutOff(Path file, long length) throws IOException {
    try (RandomAccessFile open = new RandomAccessFile(file.toFile(), "rw")) {
      open.setLength(length);
    }
  }

  /** What has been read or is open may still be read whole; nothing of other chunks is missing. */
  @ParameterizedTest
  @FieldSource("POLICIES")
  void chunks_that_go_while_they_are_read_leave_out_their_samples_at_most(String policy)
      throws IOException {
    LoaderOptions options = OPTIONS.withPolicy(policy).withBatchSize(60).withEpochs(3);
    long cut = anySample();
    long deleted = anySample();
    Received received = new Received(originals);
    try (Loader loader = open(options)) {
      received.add(loader.next(0));
      cutOff(originals.chunk(cut), originals.location(cut).offset());
      Files.deleteIfExists(originals.chunk(deleted));
      received.addEpoch(loader).addEpoch(loader).addEpoch(loader);
    }
    damageChunk(originals.location(cut).chunk());
    damageChunk(originals.location(deleted).chunk());
    for (int epoch = 0; epoch < 3; epoch++) {
      Received ofEpoch = received.ofEpoch(epoch);
      int[] times = ofEpoch.times();
      for (int sample = 0; sample < SAMPLES; sample++) {
        assertThat(times[sample]).isBetween(damaged.contains((long) sample) ? 0 : 1, 1);
      }
      assertThat(ofEpoch.due()).isEqualTo(Received.planned(originals, options, epoch));
    }
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
