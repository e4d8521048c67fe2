package org.gristway.os;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class NativeFileTest {

  @TempDir static Path folder;

  @Test
  void threads_that_are_refused_a_direct_read_together_all_get_their_bytes() throws Exception {
    Path path = Files.write(folder.resolve("file"), new byte[1 << 16]);
    int threads = 8;
    for (int round = 0; round < 200; round++) {
      try (NativeFile file = NativeFile.openDirect(path)) {
        assumeTrue(file.isDirect(), "the file system has no direct reads");
        CyclicBarrier together = new CyclicBarrier(threads);
        List<FutureTask<Long>> reads = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
          FutureTask<Long> read = new FutureTask<>(() -> readUnaligned(file, together));
          reads.add(read);
          Thread.ofPlatform().daemon().start(read);
        }
        for (FutureTask<Long> read : reads) {
          assertThat(read.get(20, TimeUnit.SECONDS)).isEqualTo(100);
        }
      }
    }
  }

  /** Reads from a place that direct reads are refused for. */
  private static long readUnaligned(NativeFile file, CyclicBarrier together) throws Exception {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(8192, 4096);
      together.await();
      return file.read(target, 100, 1);
    }
  }
}
