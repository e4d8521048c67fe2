package org.gristway.spool;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class SortedSpoolTest {

  @TempDir Path folder;

  private record Entry(byte[] key, byte[] payload) {}

  @Test
  void records_come_out_sorted_and_equal_keys_in_the_order_they_went_in() throws IOException {
    Random random = new Random(Seeds.of("records_come_out_sorted"));
    int[] memories = {1, 100, 4000, 1 << 16, 1 << 20};
    for (int i = 0; i < Thorough.count(40, 500); i++) {
      int memory = memories[random.nextInt(memories.length)];
      int count = random.nextInt(memory == 1 ? 300 : 4000);
      int keyLength = 1 + random.nextInt(20);
      byte[] letters = {0, 1, 0x7f, (byte) 0x80, (byte) 0xff};
      List<Entry> model = new ArrayList<>();
      Path path = folder.resolve("spool");
      try (SortedSpool spool = new SortedSpool(path, memory)) {
        RecordBuffer payload = new RecordBuffer();
        for (int record = 0; record < count; record++) {
          byte[] key = new byte[random.nextInt(keyLength)];
          for (int at = 0; at < key.length; at++) {
            key[at] = letters[at < keyLength - 4 ? 0 : random.nextInt(letters.length)];
          }
          if (key.length > 3) {
            key[random.nextInt(key.length)] = (byte) random.nextInt();
          }
          byte[] bytes = new byte[random.nextInt(500) == 0 ? random.nextInt(100_000) : 5];
          random.nextBytes(bytes);
          model.add(new Entry(key, bytes));
          payload.clear().putNumber(record).putBytes(bytes);
          if (random.nextBoolean()) {
            spool.add(key, payload);
          } else {
            RecordBuffer buffer = new RecordBuffer();
            spool.add(buffer.wrap(key, 0, key.length), payload);
          }
        }
        assertThat(spool.count()).isEqualTo(count);
        model.sort((one, other) -> Arrays.compareUnsigned(one.key, other.key));
        for (int pass = 0; pass < 2; pass++) {
          assertSame(spool.sorted(), model);
        }
      }
      assertThat(path).doesNotExist();
    }
  }

  private static void assertSame(SortedSpool.Cursor cursor, List<Entry> model) throws IOException {
    byte[] lastKey = null;
    long lastNumber = -1;
    for (Entry expected : model) {
      assertThat(cursor.next()).isTrue();
      RecordBuffer found = cursor.key();
      byte[] key =
          Arrays.copyOfRange(found.array(), found.offset(), found.offset() + found.length());
      long number = cursor.payload().takeNumber();
      byte[] bytes = cursor.payload().takeBytes();
      assertThat(Arrays.equals(key, expected.key)).isTrue();
      assertThat(Arrays.equals(bytes, expected.payload)).isTrue();
      assertThat(cursor.payload().hasMore()).isFalse();
      if (Arrays.equals(key, lastKey)) {
        assertThat(number).isGreaterThan(lastNumber);
      }
      lastKey = key;
      lastNumber = number;
    }
    assertThat(cursor.next()).isFalse();
    assertThat(cursor.next()).isFalse();
  }

  @Test
  void what_fits_into_memory_never_touches_the_disk() throws IOException {
    Path path = folder.resolve("no such folder/spool");
    try (SortedSpool spool = new SortedSpool(path)) {
      for (int i = 0; i < 10_000; i++) {
        spool.add(new byte[] {(byte) i}, new RecordBuffer());
      }
      SortedSpool.Cursor cursor = spool.sorted();
      int count = 0;
      while (cursor.next()) {
        count++;
      }
      assertThat(count).isEqualTo(10_000);
    }
  }

  @Test
  void an_empty_spool_has_no_records() throws IOException {
    try (SortedSpool spool = new SortedSpool(folder.resolve("spool"), 10)) {
      assertThat(spool.count()).isZero();
      assertThat(spool.sorted().next()).isFalse();
    }
  }
}
