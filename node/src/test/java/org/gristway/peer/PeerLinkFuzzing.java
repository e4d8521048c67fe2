package org.gristway.peer;

import com.code_intelligence.jazzer.api.BugDetectors;
import com.code_intelligence.jazzer.api.SilentCloseable;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.nio.file.Path;
import java.util.Arrays;
import org.gristway.dataset.Dataset;
import org.gristway.node.Packed;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

/**
 * The same as {@link PeerLinkFuzzTest}, for a fuzzer that watches which code its inputs reach. No
 * part of the build, since the fuzzer changes classes as they are loaded; for an hour of one of
 * them:
 *
 * <pre>
 * JAZZER_FUZZ=1 ./build -pl testing,core,node test -Djazzer.max_duration=1h \
 *     -Dtest=PeerLinkFuzzing#whatever_a_peer_says_is_understood_or_ends_the_connection
 * JAZZER_FUZZ=1 ./build -pl testing,core,node test -Djazzer.max_duration=1h \
 *     -Dtest=PeerLinkFuzzing#whoever_greets_with_anything_is_understood_or_refused
 * </pre>
 */
@Tag("java")
class PeerLinkFuzzing {

  @TempDir static Path folder;
  private static Dataset dataset;
  private static Hearing hearing;
  private static Greeted greeted;

  @BeforeAll
  static void listen() throws Exception {
    dataset = Dataset.open(Packed.in(folder).path());
    hearing = new Hearing(dataset.snapshot(), folder);
    greeted = new Greeted();
  }

  @AfterAll
  static void close() throws Exception {
    greeted.close();
    hearing.close();
    dataset.close();
  }

  @FuzzTest
  void whatever_a_peer_says_is_understood_or_ends_the_connection(byte[] said) throws Exception {
    hearing.hear(said);
  }

  @FuzzTest
  void whoever_greets_with_anything_is_understood_or_refused(byte[] said) throws Exception {
    int middle = said.length == 0 ? 0 : Math.min(said.length - 1, said[0] & 0x3f);
    byte[] hello = Greeted.hello();
    for (int i = 0; i < Math.min(middle, hello.length); i++) {
      hello[i] ^= said[1 + i];
    }
    byte[] rest = Arrays.copyOfRange(said, Math.min(said.length, 1 + middle), said.length);
    // The only connection is to itself.
    try (SilentCloseable _ = BugDetectors.allowNetworkConnections()) {
      greeted.greet(new Greeted.Said(hello, new byte[0], rest));
    }
  }
}
