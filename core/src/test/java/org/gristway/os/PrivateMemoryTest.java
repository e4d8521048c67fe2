package org.gristway.os;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class PrivateMemoryTest {

  private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;

  @Test
  void it_begins_at_a_page_with_zeros_and_can_be_written_to_the_end() throws IOException {
    for (long bytes : new long[] {1, 4095, 4096, 4097, 5 << 20}) {
      try (PrivateMemory memory = new PrivateMemory(bytes)) {
        MemorySegment segment = memory.segment();
        assertThat(segment.byteSize()).isEqualTo(bytes);
        assertThat(segment.address() % 4096).isZero();
        assertThat(segment.get(BYTE, 0)).isZero();
        assertThat(segment.get(BYTE, bytes - 1)).isZero();
        segment.fill((byte) 3);
        assertThat(segment.get(BYTE, bytes - 1)).isEqualTo((byte) 3);
      }
    }
  }

  @Test
  void it_costs_nothing_until_it_is_touched_and_nothing_after_it_is_closed() throws IOException {
    long before = kilobytes("VmSize:");
    long resident = kilobytes("VmRSS:");
    long bytes = 4L << 30;
    try (PrivateMemory memory = new PrivateMemory(bytes)) {
      memory.segment().set(BYTE, bytes / 2, (byte) 1);
      assertThat(kilobytes("VmSize:") - before).isGreaterThanOrEqualTo(bytes >> 10);
      // A huge page at the most, and what the JVM does meanwhile.
      assertThat(kilobytes("VmRSS:") - resident).isLessThan(1 << 20);
    }
    assertThat(kilobytes("VmSize:") - before).isLessThan(1 << 20);
  }

  private static long kilobytes(String field) throws IOException {
    return Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith(field))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
        .sum();
  }

  @Test
  void it_throws_once_it_is_closed() throws IOException {
    PrivateMemory memory = new PrivateMemory(100);
    MemorySegment segment = memory.segment();
    memory.close();
    assertThatThrownBy(() -> segment.get(BYTE, 0)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void more_than_any_machine_has_is_refused() {
    assertThatThrownBy(() -> new PrivateMemory(1L << 60))
        .isInstanceOf(PosixException.class)
        .hasMessageContaining("memory");
  }
}
