package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.plan.SampleSet;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.read.LoaderOptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class SettingsTest {

  @TempDir static Path folder;
  private static Packed packed;

  @BeforeAll
  static void pack() {
    packed = Packed.in(folder);
  }

  private static void assertRefused(ThrowingCallable call, String... named) {
    for (String each : named) {
      assertThatThrownBy(call).isInstanceOf(Failure.class).hasMessageContaining(each);
    }
  }

  private static LoaderOptions options(int rank, String... changes) {
    try (Dataset dataset = Dataset.open(packed.path())) {
      return packed.settings(changes).options(rank, dataset.snapshot());
    }
  }

  @Test
  void nodes_with_other_content_under_the_same_names_do_not_intend_the_same(@TempDir Path other) {
    try (Dataset here = Dataset.open(packed.path());
        Dataset there = Dataset.open(Packed.in(other, 1).path());
        Dataset copy = Dataset.open(Packed.in(other.resolve("copy")).path())) {
      Settings settings = packed.settings();
      assertThat(there.snapshot().datasetId()).isEqualTo(here.snapshot().datasetId());
      assertThat(settings.intent(there.snapshot())).isNotEqualTo(settings.intent(here.snapshot()));
      assertThat(settings.intent(copy.snapshot())).isEqualTo(settings.intent(here.snapshot()));
    }
  }

  @Test
  void they_say_how_a_rank_is_read() {
    LoaderOptions options =
        options(
            3,
            "policy=chunk-shuffle",
            "memory=8000000",
            "batch=12",
            "seed=-5",
            "extent=0",
            "tail=drop",
            "strict=true",
            "max-damage=0.25",
            "storage-timeout=2.5",
            "ranks=8",
            "ranks-here=4");
    assertThat(options.policy()).isEqualTo("chunk-shuffle");
    assertThat(options.memory()).isEqualTo(2_000_000); // of this machine's four ranks
    assertThat(options.batchSize()).isEqualTo(12);
    assertThat(options.seed()).isEqualTo(-5);
    assertThat(options.extentBytes()).isZero();
    assertThat(options.tail()).isEqualTo(Tail.DROP);
    assertThat(options.strict()).isTrue();
    assertThat(options.maxDamage()).isEqualTo(0.25);
    assertThat(options.storageTimeout()).isEqualTo(Duration.ofMillis(2500));
    assertThat(options.world()).isEqualTo(new World(8, 8, 3));
    assertThat(packed.settings().path()).isEqualTo(packed.path());
    assertThat(packed.settings().mode()).isEqualTo(Settings.Mode.STREAM);
    assertThat(packed.settings("mode=exact").mode()).isEqualTo(Settings.Mode.EXACT);
    assertThat(packed.settings("mode=redirect").mode()).isEqualTo(Settings.Mode.REDIRECT);
    assertThat(packed.settings().state()).isNull();
  }

  @Test
  void a_rank_has_the_same_plan_wherever_its_machine_s_ranks_are_counted() {
    assertThat(options(3, "memory=8000000", "ranks=8", "ranks-here=4").planSettings())
        .isEqualTo(options(3, "memory=4000000", "ranks=8", "ranks-here=2").planSettings());
  }

  @Test
  void memory_may_be_a_share_of_the_dataset_and_is_exact() {
    long bytes;
    try (Dataset dataset = Dataset.open(packed.path())) {
      bytes = dataset.snapshot().dataBytes();
    }
    assertThat(options(0, "memory=100%").memory()).isEqualTo(bytes);
    assertThat(options(0, "memory=12.5%").memory()).isEqualTo(bytes / 8);
    assertThat(options(0, "memory=33.3333%").memory()).isEqualTo(bytes * 333333 / 1_000_000);
    assertThat(options(0, "memory=9223372036854775807").memory()).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void what_makes_no_sense_is_refused() {
    assertRefused(() -> new Settings("no equals sign\n", "", new byte[0]), "no equals sign");
    assertRefused(() -> new Settings("", "", new byte[0]).path(), "says nothing about 'path'");
    assertRefused(() -> packed.settings("mode=guess").mode(), "no mode 'guess'");
    assertRefused(() -> options(0, "memory=plenty"), "'plenty' is no size");
    assertRefused(() -> options(0, "memory=%"), "is no size");
    assertRefused(() -> options(0, "memory=0"), "memory");
    assertRefused(() -> options(0, "memory=0.00001%"), "memory");
    assertRefused(() -> options(0, "batch=many"), "'many' is no number for 'batch'");
    assertRefused(() -> options(0, "batch=0").planSettings(), "batch");
    assertRefused(() -> options(0, "tail=wag"), "no tail 'wag'");
    assertRefused(() -> options(0, "max-damage=some"), "'some' is no number for 'max-damage'");
    assertRefused(() -> options(0, "max-damage=7"), "0 to 1", "7");
    assertRefused(() -> options(0, "storage-timeout=-1"), "seconds");
    assertRefused(() -> options(0, "storage-timeout=1e300"), "seconds");
    assertRefused(() -> options(0, "extent=5000").planSettings(), "extent");
    assertRefused(() -> options(1), "no rank 1 of 1");
    assertRefused(() -> options(-1), "no rank -1 of 1");
    assertRefused(() -> options(0, "ranks=2", "ranks-here=3"), "not 3 of them");
    assertRefused(() -> options(0, "ranks=2", "ranks-here=0"), "'ranks-here' cannot be 0");
    assertRefused(() -> new Settings(packed.text(), "not a state", new byte[0]).state(), "state");
  }

  /** Numbers from a client that is not ours must not come out as bugs of ours. */
  @Test
  void numbers_that_are_too_large_are_refused_like_others() {
    assertRefused(() -> options(0, "batch=4294967296"), "batch");
    assertRefused(() -> options(0, "ranks=4294967297"), "ranks");
    assertRefused(() -> options(0, "ranks-here=4294967297"), "ranks-here");
    assertRefused(() -> options(0, "memory=99999999999999999999"), "is no size");
  }

  @Test
  void those_who_share_a_node_must_want_the_same() {
    Settings settings = packed.settings();
    settings.checkSame(packed.settings());
    assertRefused(() -> settings.checkSame(packed.settings("seed=4")), "seed=3, not 4");
    assertRefused(() -> settings.checkSame(packed.settings("path=/elsewhere")), "not /elsewhere");
    assertRefused(
        () -> settings.checkSame(new Settings(packed.text(), "other", new byte[0])),
        "another state");
    assertRefused(
        () -> settings.checkSame(new Settings(packed.text(), "", Packed.set(1, 2))),
        "other samples");
  }

  @Test
  void samples_are_all_or_those_whose_bit_is_set() {
    assertThat(packed.settings().samples(Packed.SAMPLES)).isNull();
    SampleSet set =
        new Settings(packed.text(), "", Packed.set(0, 7, 8, 200)).samples(Packed.SAMPLES);
    assertThat(set).isNotNull();
    assertThat(set.count()).isEqualTo(4);
    for (long i = 0; i < Packed.SAMPLES; i++) {
      assertThat(set.contains(i)).isEqualTo(i == 0 || i == 7 || i == 8 || i == 200);
    }
    // A client sends as many bytes as its last sample needs.
    assertThat(new Settings(packed.text(), "", new byte[] {1}).samples(Packed.SAMPLES).count())
        .isEqualTo(1);
    Settings beyond = new Settings(packed.text(), "", Packed.set(0, 203));
    assertRefused(() -> beyond.samples(Packed.SAMPLES), "index 203", "203 samples");
  }
}
