package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.gristway.chunk.FolderChunkStore;
import org.gristway.chunk.LittleEndian;
import org.gristway.dataset.Dataset;
import org.gristway.handover.AreaQueue;
import org.gristway.handover.BatchLayout;
import org.gristway.handover.HandoverRoom;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Run;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.SampleSet;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Batches as they stand in the handover, where processes in other languages read them. */
@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PlanExecutorTest {

  private static final long USED_AT = 24; // in the header
  private static final long RESIDENT_BYTES_AT = 40;

  @TempDir Path folder;

  private interface Check {
    void area(MemorySegment area);
  }

  /** Builds all batches of an epoch of one rank, and shows each area to the check. */
  private static void build(Path path, LoaderOptions options, Check check)
      throws InterruptedException {
    try (Dataset dataset = Dataset.open(path)) {
      ReadPolicy policy = Policies.named(options.policy());
      PlanInputs inputs =
          PlanInputs.of(
              SampleLayout.of(dataset.snapshot()),
              options.seed(),
              World.of(1),
              options.planSettings());
      Run run = Run.begin(policy, inputs, 1);
      SampleSet all = SampleSet.all(dataset.size());
      try (Engine engine =
          new Engine(
              dataset,
              options,
              run.firstPlan(),
              all,
              List.of(HandoverRoom.ofRank(Long.MAX_VALUE)),
              2,
              FolderChunkStore.direct(dataset.path(), dataset.snapshot()),
              Threads.PLATFORM,
              line -> {})) {
        PlanExecutor executor = engine.executor(0, run.lane(0), Post.NONE, PeerCaches.NONE);
        AreaQueue queue = engine.areas(0).queue();
        for (int area = executor.build(1); area != AreaQueue.NONE; area = executor.build(1)) {
          check.area(engine.areas(0).memory(area));
          queue.publish(area);
          queue.release(queue.take());
        }
      }
    }
  }

  private static void assertLaidOut(MemorySegment area) {
    int places = BatchLayout.places(area);
    long used = LittleEndian.getLong(area, USED_AT);
    assertThat(used).isBetween(BatchLayout.dataAt(places), area.byteSize());
    assertThat(places).isPositive();
    for (int i = 0; i < places; i++) {
      boolean stays = (BatchLayout.flags(area, i) & BatchLayout.RESIDENT) != 0;
      long first = stays ? 0 : BatchLayout.dataAt(places);
      long last = stays ? LittleEndian.getLong(area, RESIDENT_BYTES_AT) : used;
      assertThat(BatchLayout.offset(area, i)).isBetween(first, last);
      assertThat(BatchLayout.offset(area, i) + BatchLayout.length(area, i))
          .isLessThanOrEqualTo(last);
    }
  }

  @Test
  void a_batch_says_how_far_it_reaches() throws InterruptedException {
    Random random = new Random(Seeds.of("a_batch_says_how_far_it_reaches"));
    Path path = Packs.pack(Trees.random(random, 80), folder.resolve("dataset"));
    for (String policy : LoaderContract.POLICIES) {
      for (int i = 0; i < Thorough.count(3, 50); i++) {
        build(
            path,
            LoaderContract.anyOptions(random, policy, Tail.PAD, 1),
            PlanExecutorTest::assertLaidOut);
      }
    }
  }

  /** Small damaged samples, one large good one: it stands in for batches that have none. */
  @Test
  void a_batch_that_shows_a_sample_from_elsewhere_says_how_far_it_reaches()
      throws InterruptedException {
    TreeMap<String, byte[]> tree = new TreeMap<>();
    tree.put("good", new byte[50_000]);
    for (int i = 0; i < 8; i++) {
      tree.put("bad" + i, new byte[10 + i]);
    }
    Originals originals = Originals.of(Packs.pack(tree, folder.resolve("dataset")));
    damageAllBut(originals, "good");
    build(originals.path(), options(), PlanExecutorTest::assertLaidOut);
  }

  private static void damageAllBut(Originals originals, String key) {
    for (long sample = 0; sample < originals.count(); sample++) {
      if (!originals.key(sample).equals(key)) {
        originals.flip(sample, 0);
      }
    }
  }

  private static LoaderOptions options() {
    return LoaderOptions.DEFAULT
        .withExtentBytes(64 << 10)
        .withMemory(1 << 20)
        .withBatchSize(2)
        .withMaxDamage(1);
  }

  /** Whoever looks at the area as one array finds no bytes that have failed. */
  @Test
  void no_bytes_that_have_failed_stand_in_a_batch() throws InterruptedException {
    TreeMap<String, byte[]> tree = new TreeMap<>();
    tree.put("good", "fine".getBytes(StandardCharsets.UTF_8));
    for (int i = 0; i < 7; i++) {
      tree.put("bad" + i, "FAILED".repeat(100).getBytes(StandardCharsets.UTF_8));
    }
    Originals originals = Originals.of(Packs.pack(tree, folder.resolve("dataset")));
    damageAllBut(originals, "good");
    build(
        originals.path(),
        options(),
        area -> {
          long used = LittleEndian.getLong(area, USED_AT);
          byte[] bytes = area.asSlice(0, used).toArray(ValueLayout.JAVA_BYTE);
          assertThat(new String(bytes, StandardCharsets.ISO_8859_1).contains("FAILED")).isFalse();
        });
  }
}
