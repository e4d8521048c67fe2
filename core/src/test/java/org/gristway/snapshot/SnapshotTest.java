package org.gristway.snapshot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.chunk.DatasetId;
import org.gristway.chunk.SampleEntry;
import org.gristway.chunk.Shape;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class SnapshotTest {

  private static final int CHUNK = 1000; // samples

  @TempDir Path folder;

  /** Writes a snapshot of made-up samples, all of one part and ten bytes. */
  private Path write(List<String> keys, List<Integer> labels) throws IOException {
    long nameBytes = 0;
    for (String key : keys) {
      nameBytes += key.getBytes(StandardCharsets.UTF_8).length;
    }
    Path room = Files.createTempDirectory(folder, "snapshot");
    int chunks = (keys.size() + CHUNK - 1) / CHUNK;
    try (SnapshotWriter writer =
        new SnapshotWriter(room, room, 1, new DatasetId(1, 2), keys.size(), chunks, nameBytes)) {
      for (int i = 0; i < keys.size(); i++) {
        if (i % CHUNK == 0) {
          writer.addChunk(4096, 1 << 20, 1, i);
        }
        int label = labels.isEmpty() ? SampleEntry.NO_LABEL : labels.get(i);
        byte[] key = keys.get(i).getBytes(StandardCharsets.UTF_8);
        writer.add(new SampleEntry(key, Shape.PLAIN, new long[] {10}, label, label >= 0, 0));
        writer.setChecksum(i, i);
      }
      writer.index();
      writer.finish();
      return writer.path();
    }
  }

  private static long nameBytes(List<String> keys) {
    return keys.stream().mapToLong(key -> key.getBytes(StandardCharsets.UTF_8).length).sum();
  }

  @Test
  void a_sample_of_one_part_costs_forty_bytes_and_its_key_at_most() throws IOException {
    int samples = 20_000;
    for (int classes : new int[] {0, 1, 100, samples}) {
      List<String> keys = new ArrayList<>();
      List<Integer> labels = new ArrayList<>();
      for (int i = 0; i < samples; i++) {
        int label = classes == 0 ? 0 : i % classes;
        keys.add("class" + label + "/image" + i + ".jpg");
        labels.add(label);
      }
      Path path = write(keys, classes == 0 ? List.of() : labels);
      long rest = 256 + 40 * 21 + 28 + 64 + Files.size(path) / (64 << 10) * 4; // and not a sample's
      assertThat(Files.size(path) - nameBytes(keys) - rest)
          .as("%d classes", classes)
          .isLessThanOrEqualTo((classes == samples ? 40L : 36L) * samples);
      try (Snapshot snapshot = Snapshot.open(path)) {
        snapshot.verify();
        assertThat(snapshot.namedLabelCount()).isEqualTo(classes);
        assertThat(snapshot.labelName(classes - 1).isPresent()).isEqualTo(classes > 0);
      }
    }
  }

  @Test
  void every_key_among_many_is_found_and_no_other() throws IOException {
    Random random = new Random(Seeds.of("every_key_among_many_is_found_and_no_other"));
    List<String> keys = new ArrayList<>();
    for (int i = 0; i < 200_000; i++) {
      keys.add(Integer.toString(i, 36) + "/" + Long.toString(random.nextLong() >>> 20, 36));
    }
    Path path = write(keys, List.of());
    try (Snapshot snapshot = Snapshot.open(path)) {
      for (int i = 0; i < keys.size(); i++) {
        if (snapshot.find(keys.get(i)) != i) {
          assertThat(snapshot.find(keys.get(i))).as(keys.get(i)).isEqualTo(i);
        }
        if (snapshot.find(keys.get(i) + "?") != -1) {
          assertThat(snapshot.find(keys.get(i) + "?")).isEqualTo(-1);
        }
      }
      assertThat(snapshot.find("")).isEqualTo(-1);
      assertThat(snapshot.find("x".repeat(10_000))).isEqualTo(-1);
    }
  }

  private Path writeMany(int samples, int labels) throws IOException {
    List<String> keys = new ArrayList<>();
    List<Integer> numbers = new ArrayList<>();
    for (int i = 0; i < samples; i++) {
      keys.add("class" + i % labels + "/image" + i + ".jpg");
      numbers.add(i % labels);
    }
    return write(keys, numbers);
  }

  /** What a run asks for. */
  private static String told(Snapshot snapshot, long sample) {
    return snapshot.label(sample)
        + " "
        + snapshot.length(sample)
        + " "
        + snapshot.checksum(sample)
        + " "
        + snapshot.location(sample)
        + " "
        + snapshot.shape(sample);
  }

  @Test
  void what_is_held_is_what_was_written() throws IOException {
    Path path = writeMany(20_000, 7);
    try (Snapshot mapped = Snapshot.open(path);
        Snapshot held = Snapshot.open(path)) {
      held.hold();
      for (int i = 0; i < 20_000; i++) {
        assertThat(told(held, i)).isEqualTo(told(mapped, i));
        assertThat(held.key(i)).isEqualTo(mapped.key(i)).endsWith("/image" + i + ".jpg");
        assertThat(held.find(held.key(i))).isEqualTo(i);
        assertThat(held.inKeyOrder(i)).isEqualTo(mapped.inKeyOrder(i));
      }
      assertThat(held.labelName(3)).contains("class3");
      held.verify();
    }
  }

  @Test
  void a_file_that_is_written_over_changes_nothing_that_is_held() throws IOException {
    Path path = writeMany(20_000, 7);
    byte[] other = Files.readAllBytes(writeMany(20_000, 6));
    try (Snapshot held = Snapshot.open(path)) {
      held.hold();
      List<String> before = new ArrayList<>();
      for (int i = 0; i < 10_000; i++) {
        before.add(told(held, i) + held.key(i).length());
      }
      try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
        channel.write(ByteBuffer.wrap(other), 0); // not cut off: the mapping shows it all
      }
      int refused = 0;
      for (int i = 0; i < 10_000; i++) {
        assertThat(before.get(i)).startsWith(told(held, i));
        long sample = i;
        try {
          assertThat(held.key(sample)).startsWith("class" + i % 7 + "/");
        } catch (Failure changed) {
          refused++;
          assertThat(changed).hasMessageContaining("have changed since it was opened");
          assertThat(changed.kind()).isEqualTo(Kind.DAMAGED);
        }
      }
      assertThat(refused).isGreaterThan(5_000);
      // Nobody has asked for these before.
      assertFails(Kind.DAMAGED, () -> held.label(15_000), "fail their checksum");
    }
  }

  @Test
  void a_file_that_is_cut_off_takes_nothing_that_is_held() throws IOException {
    Path path = writeMany(20_000, 7);
    try (Snapshot held = Snapshot.open(path)) {
      held.hold();
      String before = told(held, 100) + held.key(19_000).length();
      try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
        channel.truncate(0);
      }
      assertThat(before).startsWith(told(held, 100));
      assertFails(Kind.DAMAGED, () -> held.key(19_000), "cut off");
      assertFails(Kind.DAMAGED, () -> held.label(15_000), "cut off");
    }
  }

  @Test
  void several_threads_use_a_snapshot_that_was_just_opened() throws Exception {
    List<String> keys = new ArrayList<>();
    for (int i = 0; i < 50_000; i++) {
      keys.add("folder" + i % 100 + "/" + i);
    }
    Path path = write(keys, List.of());
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      for (int round = 0; round < 5; round++) {
        try (Snapshot snapshot = Snapshot.open(path)) {
          List<Callable<Void>> work = new ArrayList<>();
          for (int thread = 0; thread < 4; thread++) {
            int offset = thread * 12_345;
            work.add(
                () -> {
                  for (int i = 0; i < keys.size(); i++) {
                    int id = (i + offset) % keys.size();
                    if (snapshot.find(keys.get(id)) != id
                        || snapshot.checksum(id) != id
                        || snapshot.location(id).length() != 10
                        || snapshot.location(id).chunk() != id / CHUNK) {
                      throw new AssertionError(
                          keys.get(id)
                              + " is found at "
                              + snapshot.find(keys.get(id))
                              + ", "
                              + snapshot.checksum(id)
                              + " "
                              + snapshot.location(id));
                    }
                  }
                  return null;
                });
          }
          for (Future<Void> each : threads.invokeAll(work)) {
            each.get();
          }
        }
      }
    }
  }

  @Test
  void key_order_ranks_every_key() throws IOException {
    List<String> keys = List.of("b", "a/x", "a", "a!", "a/é", "é", "a0", "中/1");
    try (Snapshot snapshot = Snapshot.open(write(keys, List.of()))) {
      List<String> inOrder = new ArrayList<>();
      for (long rank = 0; rank < keys.size(); rank++) {
        inOrder.add(snapshot.key(snapshot.inKeyOrder(rank)));
      }
      assertThat(inOrder).containsExactly("a", "a/x", "a/é", "a!", "a0", "b", "é", "中/1");
      for (int i = 0; i < inOrder.size(); i++) {
        assertThat(snapshot.rankOf(inOrder.get(i).getBytes(StandardCharsets.UTF_8))).isEqualTo(i);
      }
      assertThat(snapshot.rankOf(new byte[] {(byte) 0xff})).isEqualTo(keys.size());
    }
  }

  @Test
  void a_key_that_occurs_twice_is_refused() {
    assertFails(
        Kind.WRONG_CALL, () -> write(List.of("a/1", "b", "a/1"), List.of()), "'a/1'", "unique");
  }

  @Test
  void a_label_far_above_the_number_of_samples_is_refused() {
    assertFails(
        Kind.DAMAGED, () -> write(List.of("a/1"), List.of(Integer.MAX_VALUE)), "'a/1'", "label");
  }

  @Test
  void damage_is_noticed_where_it_is_touched_and_not_before() throws IOException {
    List<String> keys = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      keys.add("key" + i);
    }
    Path path = write(keys, List.of());
    byte[] bytes = Files.readAllBytes(path);
    bytes[300_000] ^= 1; // in the records of samples from about the 12,400th
    Files.write(path, bytes);
    try (Snapshot snapshot = Snapshot.open(path)) {
      assertThat(snapshot.label(100)).isEqualTo(SampleEntry.NO_LABEL);
      assertFails(Kind.DAMAGED, () -> snapshot.label(12_450), path.toString(), "rebuild");
      assertFails(Kind.DAMAGED, () -> snapshot.label(12_450), path.toString(), "rebuild");
      assertFails(Kind.DAMAGED, snapshot::verify, path.toString());
    }
  }
}
