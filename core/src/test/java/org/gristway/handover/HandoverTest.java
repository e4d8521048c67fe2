package org.gristway.handover;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.gristway.Failure;
import org.gristway.os.SharedMemory;
import org.gristway.pack.Programs;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class HandoverTest {

  private static final int RANKS = 3;
  private static final int AREAS = 4;

  @TempDir Path folder;

  /** Areas are filled with a number of their own again and again, and grow meanwhile. */
  @Test
  void no_area_reaches_into_another_however_they_grow() throws IOException {
    Random random = new Random(Seeds.of("no_area_reaches_into_another"));
    long[][] filled = new long[RANKS][AREAS];
    try (Handover handover = new Handover(RANKS, AREAS)) {
      for (int i = 0; i < 300; i++) {
        int rank = random.nextInt(RANKS);
        int area = random.nextInt(AREAS);
        long bytes = 1 + random.nextInt(1 << random.nextInt(1, 18));
        MemorySegment memory = handover.rank(rank).reserve(area, bytes);
        assertThat(memory.byteSize()).isGreaterThanOrEqualTo(bytes);
        memory.asSlice(0, bytes).fill(number(rank, area));
        filled[rank][area] = bytes;
      }
      try (SharedMemory trainer = SharedMemory.open(handover.path())) {
        for (int rank = 0; rank < RANKS; rank++) {
          for (int area = 0; area < AREAS; area++) {
            long bytes = filled[rank][area];
            MemorySegment own = handover.rank(rank).memory(area).asSlice(0, bytes);
            assertThat(own.toArray(ValueLayout.JAVA_BYTE)).containsOnly(number(rank, area));
            MemorySegment seen = trainer.map(handover.rank(rank).offset(area), bytes);
            assertThat(seen.mismatch(own)).isEqualTo(-1);
          }
        }
      }
    }
  }

  private static byte number(int rank, int area) {
    return (byte) (1 + rank * AREAS + area);
  }

  @Test
  void an_area_keeps_its_memory_while_batches_fit() {
    try (Handover handover = new Handover(1, AREAS)) {
      MemorySegment memory = handover.rank(0).reserve(0, 10_000);
      long bytes = handover.bytes();
      assertThat(bytes).isEqualTo(memory.byteSize()).isGreaterThanOrEqualTo(10_000);
      for (int i = 0; i < 100; i++) {
        assertThat(handover.rank(0).reserve(0, 9_000 + i)).isEqualTo(memory);
      }
      assertThat(handover.bytes()).isEqualTo(bytes);
    }
  }

  @Test
  void a_grown_area_gives_its_old_memory_back() {
    try (Handover handover = new Handover(1, 256)) {
      assertThat(handover.bytes()).isZero();
      for (long bytes = 1000; bytes < 4 << 20; bytes += bytes / 3) {
        handover.rank(0).reserve(3, bytes).fill((byte) 1);
        assertThat(handover.bytes()).isBetween(bytes, 2 * bytes);
        assertThat(taken(handover)).isLessThanOrEqualTo(handover.bytes() + 4096);
      }
    }
  }

  /** A builder of batches of all sizes, and a trainer that keeps one or two for a while. */
  @Test
  void areas_never_take_more_than_their_room_and_everything_comes_through() throws Exception {
    Random random = new Random(Seeds.of("areas_never_take_more_than_their_room"));
    long most = 400_000;
    HandoverRoom room = HandoverRoom.ofRank(most);
    try (Handover handover = new Handover(7, 0, List.of(room))) {
      Handover.RankAreas areas = handover.rank(0);
      ArrayDeque<Integer> kept = new ArrayDeque<>();
      for (int i = 0; i < 2_000; i++) {
        long bytes = 1 + random.nextInt(1 << random.nextInt(1, 18)) % 110_000;
        int area = areas.claim(bytes);
        areas.reserve(area, bytes).asSlice(0, bytes).fill((byte) i);
        assertThat(handover.bytes()).isLessThanOrEqualTo(room.taken());
        assertThat(room.taken()).isLessThanOrEqualTo(most);
        if (i % 50 == 0) {
          assertThat(taken(handover)).isLessThanOrEqualTo(most);
        }
        areas.queue().publish(area);
        kept.add(areas.queue().take());
        while (kept.size() > 1 + random.nextInt(2)) {
          areas.release(kept.poll());
        }
      }
    }
    assertThat(room.taken()).isZero();
  }

  @Test
  void a_batch_that_can_never_fit_is_refused_with_what_would_do() {
    try (Handover handover = new Handover(4, 0, List.of(HandoverRoom.ofRank(1 << 20)))) {
      assertThatThrownBy(() -> handover.rank(0).claim((1 << 19) + 1))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("at least " + 2 * ((1 << 19) + 4096) + " bytes");
    }
  }

  @Test
  void who_has_all_the_room_is_told_and_does_not_wait_for_ever() throws Exception {
    HandoverRoom room = HandoverRoom.ofRank(1 << 20);
    try (Handover handover = new Handover(4, 0, List.of(room))) {
      Handover.RankAreas areas = handover.rank(0);
      for (int i = 0; i < 2; i++) {
        int area = areas.claim(500_000);
        areas.reserve(area, 500_000);
        areas.queue().publish(area);
      }
      int first = areas.queue().take();
      int second = areas.queue().take();
      FutureTask<Integer> builder = new FutureTask<>(() -> areas.claim(500_000));
      Thread.ofPlatform().daemon().start(builder);
      assertThat(areas.queue().take()).isEqualTo(AreaQueue.ALL_TAKEN);
      areas.release(first);
      areas.release(second);
      assertThat(builder.get(60, TimeUnit.SECONDS)).isIn(first, second);
    }
  }

  @Test
  void who_asks_without_waiting_shares_one_room_with_the_others() throws Exception {
    HandoverRoom room = HandoverRoom.ofRequests(1 << 20);
    Handover other = new Handover(256, 0, List.of(room));
    try (Handover handover = new Handover(256, 0, List.of(room))) {
      int kept = other.rank(0).claim(900_000);
      other.rank(0).reserve(kept, 900_000);
      assertThat(handover.rank(0).claim(200_000)).isEqualTo(AreaQueue.ALL_TAKEN);
      other.rank(0).queue().publish(kept);
      other.rank(0).release(other.rank(0).queue().take());
      assertThat(room.taken()).isZero(); // it is not kept while others may need it
      assertThat(handover.rank(0).claim(200_000)).isNotNegative();
      other.close();
    }
    assertThat(room.taken()).isZero();
  }

  @Test
  void what_one_has_released_is_there_for_another_that_finds_no_room() throws Exception {
    HandoverRoom room = HandoverRoom.ofRequests(1 << 20);
    try (Handover idle = new Handover(256, 0, List.of(room));
        Handover handover = new Handover(256, 0, List.of(room))) {
      for (int i = 0; i < 3; i++) {
        Handover.RankAreas one = (i % 2 == 0 ? idle : handover).rank(0);
        Handover.RankAreas other = (i % 2 == 0 ? handover : idle).rank(0);
        build(one, 400_000);
        build(one, 100_000);
        one.release(one.queue().take());
        build(other, 100_000);
        assertThat(other.claim(900_000)).isEqualTo(AreaQueue.ALL_TAKEN); // one is in use
        one.release(one.queue().take());
        other.release(other.queue().take());
        build(other, 1_000_000);
        other.release(other.queue().take());
      }
    }
    assertThat(room.taken()).isZero();
  }

  private static void build(Handover.RankAreas areas, long bytes) throws InterruptedException {
    int area = areas.claim(bytes);
    assertThat(area).isNotNegative();
    areas.reserve(area, bytes).fill((byte) 1);
    areas.queue().publish(area);
  }

  @Test
  void an_area_that_could_not_be_made_larger_does_not_keep_it_from_closing() throws Exception {
    HandoverRoom room = HandoverRoom.ofRank(Long.MAX_VALUE);
    Handover handover = new Handover(4, 0, List.of(room));
    handover.rank(0).reserve(0, 1000);
    // More than any file can have: the memory file cannot be extended.
    assertThatThrownBy(() -> handover.rank(0).reserve(0, 1L << 62)).isInstanceOf(Failure.class);
    Path path = handover.path();
    handover.close();
    assertThat(Files.exists(path) && Files.readSymbolicLink(path).toString().contains("handover"))
        .isFalse();
    assertThat(room.taken()).isZero();
  }

  /** Bytes of memory that the system has given. */
  private long taken(Handover handover) {
    String blocks = Programs.run(folder, "stat", "-L", "-c", "%b", handover.path().toString());
    return Long.parseLong(blocks.strip()) * 512;
  }

  @Test
  void nothing_is_left_after_closing() throws IOException {
    Handover handover = new Handover(1, 1);
    MemorySegment memory = handover.rank(0).reserve(0, 100);
    Path path = handover.path();
    assertThat(Files.readSymbolicLink(path).toString()).contains("gristway-handover");
    handover.close();
    assertThat(Files.exists(path) && Files.readSymbolicLink(path).toString().contains("handover"))
        .isFalse();
    assertThatThrownBy(() -> memory.get(ValueLayout.JAVA_BYTE, 0))
        .isInstanceOf(IllegalStateException.class);
  }

  /** Other languages read these bytes: they stay as they are drawn. */
  @Test
  void a_batch_is_laid_out_as_drawn() {
    byte[] bytes = new byte[(int) BatchLayout.dataAt(2)];
    MemorySegment area = MemorySegment.ofArray(bytes);
    BatchLayout.writeHeader(area, 0x0102, 0x0304, 5, 2, 0x0607);
    BatchLayout.writeRecord(area, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0);
    BatchLayout.writeRecord(
        area, 1, 0x21, 0x22, 0x23, 0x24, 0x25, -1, BatchLayout.REPEAT | BatchLayout.DAMAGED);
    assertThat(HexFormat.of().formatHex(bytes))
        .isEqualTo(
            "0201000000000000"
                + "0403000000000000"
                + "05000000"
                + "02000000"
                + "0706000000000000"
                + "00".repeat(32)
                + "1100000000000000"
                + "1200000000000000"
                + "1300000000000000"
                + "1400000000000000"
                + "1500000000000000"
                + "16000000"
                + "00000000"
                + "2100000000000000"
                + "2200000000000000"
                + "2300000000000000"
                + "2400000000000000"
                + "2500000000000000"
                + "ffffffff"
                + "03000000");
    assertThat(BatchLayout.dataAt(0)).isEqualTo(64);
    assertThat(BatchLayout.aligned(64)).isEqualTo(64);
    assertThat(BatchLayout.aligned(65)).isEqualTo(72);
    assertThat(BatchLayout.label(area, 1)).isEqualTo(-1);
    assertThat(BatchLayout.flags(area, 1)).isEqualTo(3);
    assertThat(BatchLayout.planned(area, 1)).isEqualTo(0x24);
  }
}
