package org.gristway.counters;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.gristway.dataset.Dataset;
import org.gristway.pack.Packs;
import org.gristway.read.Beginning;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;
import org.gristway.read.ReadCounter;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Counters can be read by any process of the user, at any time, until theirs is gone. */
@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CountersTest {

  private static final long SELF = ProcessHandle.current().pid();

  @TempDir Path folder;

  @Test
  void a_process_reads_what_it_counts_by_name_and_in_order() {
    try (Counters counters = Counters.create(List.of("apples", "pears", "größe"))) {
      counters.get(0).add(5);
      counters.get(2).add(-7);
      counters.get(0).add(1);
      assertThat(counters.get(0).get()).isEqualTo(6);
      Map<String, Long> seen = ofSelf("apples").getFirst();
      assertThat(seen).containsExactlyEntriesOf(ordered("apples", 6, "pears", 0, "größe", -7));
    }
    assertThat(ofSelf("apples")).isEmpty();
  }

  private static Map<String, Long> ordered(Object... namesAndValues) {
    Map<String, Long> map = new LinkedHashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      map.put((String) namesAndValues[i], ((Number) namesAndValues[i + 1]).longValue());
    }
    return map;
  }

  /** Other tests may have loaders of their own. */
  private static List<Map<String, Long>> ofSelf(String name) {
    return Counters.of(SELF).stream().filter(each -> each.containsKey(name)).toList();
  }

  @Test
  void a_name_may_be_as_long_as_its_field_is() {
    String longest = "n".repeat(56);
    try (Counters counters = Counters.create(List.of(longest, "after"))) {
      counters.get(0).add(3);
      counters.get(1).add(4);
      assertThat(ofSelf("after")).containsExactly(Map.of(longest, 3L, "after", 4L));
    }
  }

  @Test
  void threads_that_count_at_once_lose_nothing() throws InterruptedException {
    try (Counters counters = Counters.create(List.of("times"))) {
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        threads.add(
            Thread.ofPlatform()
                .start(
                    () -> {
                      for (int times = 0; times < 10_000; times++) {
                        counters.get(0).add(1);
                      }
                    }));
      }
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(ofSelf("times").getFirst()).containsEntry("times", 40_000L);
    }
  }

  @Test
  void counters_are_found_while_others_come_and_go() throws InterruptedException {
    // So that those that come and go have the lower numbers, and are looked at before.
    List<Counters> before = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      before.add(Counters.create(List.of("before")));
    }
    try (Counters lasting = Counters.create(List.of("lasting"))) {
      before.forEach(Counters::close);
      Thread busy =
          Thread.ofPlatform()
              .daemon()
              .start(
                  () -> {
                    while (!Thread.currentThread().isInterrupted()) {
                      try (Counters passing = Counters.create(List.of("passing"));
                          Counters other = Counters.create(List.of("other"))) {
                        passing.get(0).add(1);
                        other.get(0).add(1);
                      }
                    }
                  });
      try {
        lasting.get(0).add(9);
        for (int i = 0; i < 1000; i++) {
          assertThat(ofSelf("lasting")).containsExactly(Map.of("lasting", 9L));
        }
      } finally {
        busy.interrupt();
        busy.join();
      }
    }
  }

  @Test
  void a_process_without_counters_or_that_is_gone_has_none() throws Exception {
    Process process = new ProcessBuilder("sleep", "60").start();
    try {
      assertThat(Counters.of(process.pid())).isEmpty();
    } finally {
      process.destroyForcibly();
    }
    process.waitFor();
    assertThat(Counters.of(process.pid())).isEmpty();
    assertThat(Counters.of(Integer.MAX_VALUE)).isEmpty();
  }

  /** Opens a loader, receives some batches, tells of it, and stays until it is killed. */
  static final class Training {

    private Training() {}

    public static void main(String[] args) throws Exception {
      Path dataset = Path.of(args[0]);
      long watched = Long.parseLong(args[1]);
      LoaderOptions options = LoaderOptions.DEFAULT.withMemory(1 << 20).withBatchSize(2);
      try (Loader loader =
          Loader.open(Dataset.open(dataset), options, Beginning.NEW_RUN, line -> {})) {
        for (int i = 0; i < 5; i++) {
          loader.next(0).close();
        }
        System.out.println(Counters.of(watched));
        TimeUnit.MINUTES.sleep(10);
      }
    }
  }

  @Test
  void a_loader_in_another_process_is_seen_and_sees_and_is_gone_when_it_is_killed()
      throws Exception {
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < 20; i++) {
      tree.put("sample" + i, new byte[100 + i]);
    }
    Path dataset = Packs.pack(tree, folder.resolve("dataset"));
    try (Counters own = Counters.create(List.of("watched-by-others"))) {
      own.get(0).add(42);
      Process training =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "--enable-native-access=ALL-UNNAMED",
                  "-Xmx64m",
                  "-cp",
                  System.getProperty(
                      "surefire.test.class.path", System.getProperty("java.class.path")),
                  Training.class.getName(),
                  dataset.toString(),
                  String.valueOf(SELF))
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start();
      try (BufferedReader out = training.inputReader(StandardCharsets.UTF_8)) {
        assertThat(out.readLine()).contains("watched-by-others=42");
        assertSeen(training.pid());
      } finally {
        training.destroyForcibly(); // SIGKILL
        training.waitFor();
      }
      assertThat(Counters.of(training.pid())).isEmpty();
    }
  }

  private static void assertSeen(long process) {
    List<Map<String, Long>> all = Counters.of(process);
    assertThat(all).hasSize(1);
    Map<String, Long> seen = all.getFirst();
    assertThat(seen.keySet())
        .containsExactly(
            Arrays.stream(ReadCounter.values()).map(ReadCounter::text).toArray(String[]::new));
    assertThat(seen).containsEntry("batches", 5L);
    assertThat(seen.get("storage-bytes")).isGreaterThanOrEqualTo(20 * 100);
    assertThat(seen.get("resident-bytes")).isBetween(0L, 1L << 20);
    assertThat(seen.get("damaged")).isZero();
  }
}
