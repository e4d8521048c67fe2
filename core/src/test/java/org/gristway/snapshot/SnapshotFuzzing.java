package org.gristway.snapshot;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.gristway.chunk.Mutations;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

/**
 * The same as {@link SnapshotFuzzTest}, for a fuzzer that watches which code its inputs reach. No
 * part of the build, since the fuzzer changes classes as they are loaded; for an hour of it:
 *
 * <pre>
 * JAZZER_FUZZ=1 ./build -pl testing,core test -Dtest=SnapshotFuzzing -Djazzer.max_duration=1h
 * </pre>
 */
@Tag("java")
class SnapshotFuzzing {

  @TempDir static Path folder;
  private static byte[] valid;

  @BeforeAll
  static void copyGoldenFiles() throws IOException, URISyntaxException {
    Path golden = Path.of(SnapshotFuzzing.class.getResource("/golden").toURI());
    for (String name : List.of("chunk-000000.gwc", "chunk-000001.gwc")) {
      Files.copy(golden.resolve(name), folder.resolve(name));
    }
    valid = Files.readAllBytes(golden.resolve(Snapshot.fileName(2)));
  }

  @FuzzTest
  void a_patched_snapshot_is_used_safely_or_refused(byte[] patches) throws IOException {
    byte[] bytes = Mutations.repairSnapshot(Mutations.patch(valid, patches));
    Files.write(folder.resolve(Snapshot.fileName(2)), bytes);
    SnapshotFuzzTest.use(folder, List.of("cat/1", "dog/été", "readme", "ant/中"));
  }
}
