package org.gristway.spool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class SpoolTest {

  @TempDir Path folder;

  @Test
  void records_come_back_as_they_were_as_often_as_asked() throws IOException {
    Random random = new Random(Seeds.of("records_come_back_as_they_were_as_often_as_asked"));
    List<byte[]> records = new ArrayList<>();
    Spool spool = new Spool(folder.resolve("spool"));
    try (spool) {
      for (int i = 0; i < 2000; i++) {
        byte[] bytes = new byte[random.nextInt(50) == 0 ? random.nextInt(200_000) : i % 40];
        random.nextBytes(bytes);
        records.add(bytes);
        spool.add(new RecordBuffer().putBytes(bytes).putNumber(i));
      }
    }
    assertThat(spool.count()).isEqualTo(records.size());
    for (int pass = 0; pass < 3; pass++) {
      try (Spool.Reader reader = spool.read()) {
        for (int i = 0; i < records.size(); i++) {
          assertThat(reader.hasNext()).isTrue();
          RecordBuffer record = reader.next();
          assertThat(java.util.Arrays.equals(record.takeBytes(), records.get(i))).isTrue();
          assertThat(record.takeNumber()).isEqualTo(i);
          assertThat(record.hasMore()).isFalse();
        }
        assertThat(reader.hasNext()).isFalse();
      }
    }
  }

  @Test
  void the_file_is_closed_where_it_cannot_be_written() throws IOException {
    Path full = Path.of("/dev/full");
    assumeTrue(Files.isWritable(full), "needs /dev/full");
    long before = openFiles(full);
    Spool spool = new Spool(full);
    spool.add(new RecordBuffer().putNumber(1));
    assertThatThrownBy(spool::close).isInstanceOf(Failure.class).hasMessageContaining("No space");
    assertThat(openFiles(full)).isEqualTo(before);
  }

  /** How often this process has a file open. */
  private static long openFiles(Path file) throws IOException {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.filter(each -> file.equals(target(each))).count();
    }
  }

  private static Path target(Path link) {
    try {
      return Files.readSymbolicLink(link);
    } catch (IOException closed) {
      return Path.of(""); // as that which lists them is
    }
  }

  @Test
  void an_empty_reader_has_nothing() throws IOException {
    try (Spool.Reader reader = Spool.emptyReader()) {
      assertThat(reader.hasNext()).isFalse();
    }
  }

  @Test
  void numbers_of_all_sizes_come_back() {
    Random random = new Random(Seeds.of("numbers_of_all_sizes_come_back"));
    List<Long> numbers =
        new ArrayList<>(List.of(0L, 1L, 127L, 128L, -1L, Long.MAX_VALUE, Long.MIN_VALUE));
    for (int bits = 0; bits < 64; bits++) {
      numbers.add(random.nextLong() >>> bits);
      numbers.add(1L << bits);
    }
    RecordBuffer buffer = new RecordBuffer();
    numbers.forEach(number -> buffer.putNumber(number).putSortable(number));
    RecordBuffer reading =
        new RecordBuffer().wrap(buffer.array(), buffer.offset(), buffer.length());
    for (long number : numbers) {
      assertThat(reading.takeNumber()).isEqualTo(number);
      assertThat(reading.takeSortable()).isEqualTo(number);
    }
    assertThat(reading.hasMore()).isFalse();
  }

  @Test
  void sortable_numbers_compare_as_unsigned_ones_do() {
    Random random = new Random(Seeds.of("sortable_numbers_compare_as_unsigned_ones_do"));
    for (int i = 0; i < 1000; i++) {
      long one = random.nextLong() >>> random.nextInt(64);
      long other = random.nextBoolean() ? one + 1 : random.nextLong();
      RecordBuffer left = new RecordBuffer().putSortable(one);
      RecordBuffer right = new RecordBuffer().putSortable(other);
      assertThat(
              Integer.signum(
                  java.util.Arrays.compareUnsigned(
                      left.array(), 0, left.length(), right.array(), 0, right.length())))
          .isEqualTo(Integer.signum(Long.compareUnsigned(one, other)));
    }
  }
}
