package org.gristway.os;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gristway.pack.Programs;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class SharedMemoryTest {

  private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;

  @TempDir Path folder;

  @Test
  void what_one_writes_the_other_reads() throws IOException {
    try (SharedMemory memory = SharedMemory.create("gristway-test")) {
      assertThat(memory.size()).isZero();
      memory.extend(10_000);
      MemorySegment written = memory.map(0, memory.size());
      written.asSlice(9_000).setString(0, "hello");
      try (SharedMemory other = SharedMemory.open(memory.path())) {
        assertThat(other.size()).isEqualTo(memory.size());
        MemorySegment seen = other.map(8192, 4096);
        assertThat(seen.asSlice(9_000 - 8192).getString(0)).isEqualTo("hello");
        seen.set(BYTE, 0, (byte) 7);
        assertThat(written.get(BYTE, 8192)).isEqualTo((byte) 7);
      }
    }
  }

  @Test
  void another_process_reads_it_by_its_path() throws IOException {
    try (SharedMemory memory = SharedMemory.create("gristway-test")) {
      memory.extend(1);
      memory.map(0, 4096).setString(0, "over there", StandardCharsets.UTF_8);
      assertThat(Programs.run(folder, "head", "-c", "10", memory.path().toString()))
          .isEqualTo("over there");
    }
  }

  @Test
  void it_grows_by_whole_pages_and_old_stretches_stay_mapped() throws IOException {
    try (SharedMemory memory = SharedMemory.create("gristway-test")) {
      List<MemorySegment> stretches = new ArrayList<>();
      long end = 0;
      for (long bytes : new long[] {1, 4096, 4097, 100_000}) {
        long start = memory.extend(bytes);
        assertThat(start).isEqualTo(end).isEqualTo(start & -4096);
        MemorySegment stretch = memory.map(start, bytes);
        stretch.fill((byte) stretches.size());
        stretches.add(stretch);
        end = memory.size();
        assertThat(end).isGreaterThanOrEqualTo(start + bytes).isEqualTo(end & -4096);
      }
      for (int i = 0; i < stretches.size(); i++) {
        assertThat(stretches.get(i).get(BYTE, stretches.get(i).byteSize() - 1)).isEqualTo((byte) i);
      }
    }
  }

  @Test
  void discarded_memory_is_given_back_and_reads_as_zeros() throws IOException {
    try (SharedMemory memory = SharedMemory.create("gristway-test")) {
      memory.extend(1 << 20);
      MemorySegment all = memory.map(0, 1 << 20);
      all.fill((byte) 1);
      assertThat(kilobytes(memory)).isGreaterThanOrEqualTo(1024);
      memory.discard(4096, (1 << 20) - 8192);
      assertThat(kilobytes(memory)).isLessThanOrEqualTo(16);
      assertThat(all.get(BYTE, 4096)).isZero();
      assertThat(all.get(BYTE, 4095)).isEqualTo((byte) 1);
      assertThat(all.get(BYTE, (1 << 20) - 4096)).isEqualTo((byte) 1);
      assertThat(memory.size()).isEqualTo(1 << 20);
    }
  }

  private long kilobytes(SharedMemory memory) {
    String blocks = Programs.run(folder, "stat", "-L", "-c", "%b", memory.path().toString());
    return Long.parseLong(blocks.strip()) / 2;
  }

  @Test
  void nothing_is_left_after_closing() throws IOException {
    SharedMemory memory = SharedMemory.create("gristway-test-closing");
    memory.extend(4096);
    MemorySegment mapped = memory.map(0, 4096);
    Path path = memory.path();
    assertThat(path).exists();
    assertThat(maps()).contains("gristway-test-closing");
    memory.close();
    assertThat(maps()).doesNotContain("gristway-test-closing");
    assertThatThrownBy(() -> mapped.get(BYTE, 0)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> Files.readSymbolicLink(path)).isInstanceOf(NoSuchFileException.class);
    assertThatThrownBy(() -> SharedMemory.open(path)).isInstanceOf(IOException.class);
  }

  private static String maps() throws IOException {
    return Files.readString(Path.of("/proc/self/maps"));
  }

  @Test
  void it_is_not_passed_on_to_other_programs() throws IOException {
    try (SharedMemory memory = SharedMemory.create("gristway-test-child")) {
      assertThat(memory.path()).exists();
      assertThat(Programs.sh(folder, "ls -l /proc/self/fd")).doesNotContain("gristway-test");
    }
  }
}
