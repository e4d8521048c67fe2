package org.gristway.chunk;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

/**
 * The same as {@link ChunkFuzzTest}, for a fuzzer that watches which code its inputs reach. No part
 * of the build, since the fuzzer changes classes as they are loaded; for an hour of it:
 *
 * <pre>
 * JAZZER_FUZZ=1 ./build -pl testing,core test -Dtest=ChunkFuzzing -Djazzer.max_duration=1h
 * </pre>
 */
@Tag("java")
class ChunkFuzzing {

  @TempDir static Path folder;
  private static byte[] valid;

  @BeforeAll
  static void readGoldenFile() throws IOException, URISyntaxException {
    Path golden = Path.of(ChunkFuzzing.class.getResource("/golden").toURI());
    valid = Files.readAllBytes(golden.resolve(ChunkFormat.fileName(1)));
  }

  @FuzzTest
  void a_patched_chunk_is_read_safely_or_refused(byte[] patches) throws IOException {
    byte[] bytes = Mutations.repairChunk(Mutations.patch(valid, patches));
    ChunkFuzzTest.use(Files.write(folder.resolve("chunk"), bytes));
  }
}
