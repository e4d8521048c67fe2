package org.gristway.os;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.gristway.pack.Programs;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files that stay open, within one budget for all who keep them. */
@Tag("java")
class KeptFilesTest {

  private static final int FILES = 40;

  @TempDir Path folder;
  private final AtomicInteger opened = new AtomicInteger();

  /** Each file holds its own number. */
  @BeforeEach
  void makeFiles() throws IOException {
    for (int i = 0; i < FILES; i++) {
      Files.write(folder.resolve("" + i), new byte[] {(byte) i});
    }
  }

  private NativeFile open(int number) throws IOException {
    opened.incrementAndGet();
    return NativeFile.openToRead(folder.resolve("" + number));
  }

  private static int read(KeptFiles files, int number) {
    int[] found = {-1};
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(1);
      files.with(
          number,
          file -> {
            file.readFully(memory, 1, 0);
            found[0] = memory.get(ValueLayout.JAVA_BYTE, 0);
          });
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
    return found[0];
  }

  /** How many files of this test's folder the process has open. */
  private long openHere() throws IOException {
    try (var entries = Files.list(Path.of("/proc/self/fd"))) {
      return entries
          .filter(
              entry -> {
                try {
                  return Files.readSymbolicLink(entry).startsWith(folder.toRealPath());
                } catch (IOException gone) {
                  return false;
                }
              })
          .count();
    }
  }

  @Test
  void all_stores_together_keep_no_more_files_open_than_the_budget() throws IOException {
    Descriptors five = new Descriptors(5);
    try (KeptFiles one = new KeptFiles(this::open, five);
        KeptFiles other = new KeptFiles(this::open, five)) {
      for (int round = 0; round < 3; round++) {
        for (int i = 0; i < FILES; i++) {
          assertThat(read(one, i)).isEqualTo(i);
          assertThat(read(other, FILES - 1 - i)).isEqualTo(FILES - 1 - i);
          assertThat(openHere()).isLessThanOrEqualTo(5);
        }
      }
    }
    assertThat(openHere()).isZero();
  }

  @Test
  void a_file_that_is_used_often_is_opened_once() {
    try (KeptFiles files = new KeptFiles(this::open, new Descriptors(3))) {
      for (int i = 1; i < FILES; i++) {
        read(files, 0);
        read(files, i);
      }
      assertThat(opened.get()).isEqualTo(FILES);
    }
  }

  @Test
  void files_within_the_budget_are_opened_once() {
    try (KeptFiles files = new KeptFiles(this::open, new Descriptors(FILES))) {
      for (int round = 0; round < 3; round++) {
        for (int i = 0; i < FILES; i++) {
          read(files, i);
        }
      }
      assertThat(opened.get()).isEqualTo(FILES);
    }
  }

  /** A descriptor that is closed under a reader is soon another file's. */
  @Test
  void no_thread_ever_reads_from_a_file_that_is_not_its_own() throws Exception {
    long seed = Seeds.of("no_thread_ever_reads_from_a_file_that_is_not_its_own");
    Descriptors few = new Descriptors(3);
    try (KeptFiles one = new KeptFiles(this::open, few);
        KeptFiles other = new KeptFiles(this::open, few);
        ExecutorService threads = Executors.newFixedThreadPool(8)) {
      List<Future<?>> readers = new ArrayList<>();
      for (int thread = 0; thread < 8; thread++) {
        Random random = new Random(seed + thread);
        readers.add(
            threads.submit(
                () -> {
                  for (int i = 0; i < 2_000; i++) {
                    int number = random.nextInt(FILES);
                    assertThat(read(random.nextBoolean() ? one : other, number)).isEqualTo(number);
                  }
                }));
      }
      for (Future<?> reader : readers) {
        reader.get(60, TimeUnit.SECONDS);
      }
    }
    assertThat(openHere()).isZero();
  }

  @Test
  void with_all_files_in_use_one_waits_and_then_gets_its_own() throws Exception {
    Descriptors single = new Descriptors(1);
    CountDownLatch inUse = new CountDownLatch(1);
    CountDownLatch release = new CountDownLatch(1);
    try (KeptFiles files = new KeptFiles(this::open, single);
        ExecutorService threads = Executors.newFixedThreadPool(2)) {
      Future<?> first =
          threads.submit(
              () -> {
                files.with(
                    1,
                    _ -> {
                      inUse.countDown();
                      await(release);
                    });
                return null;
              });
      inUse.await();
      Future<Integer> second = threads.submit(() -> read(files, 2));
      assertThat(openHere()).isEqualTo(1);
      assertThat(second.isDone()).isFalse();
      release.countDown();
      first.get(60, TimeUnit.SECONDS);
      assertThat(second.get(60, TimeUnit.SECONDS)).isEqualTo(2);
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException stop) {
      throw new IllegalStateException(stop);
    }
  }

  @Test
  void a_file_that_is_closed_while_in_use_stays_open_to_the_end_of_the_use() throws IOException {
    KeptFiles files = new KeptFiles(this::open, new Descriptors(3));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(1);
      files.with(
          7,
          file -> {
            files.close();
            file.readFully(memory, 1, 0);
          });
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 7);
      assertThat(openHere()).isZero();
    }
  }

  @Test
  void a_file_that_cannot_be_opened_costs_no_descriptor() {
    try (KeptFiles files = new KeptFiles(this::open, new Descriptors(1))) {
      for (int i = 0; i < 3; i++) {
        assertThatThrownBy(() -> files.with(FILES, _ -> {})).isInstanceOf(PosixException.class);
      }
      assertThat(read(files, 3)).isEqualTo(3);
    }
  }

  /** Keeps files, lets something else take all descriptors, and reads on. */
  static final class OutOfDescriptors {

    private OutOfDescriptors() {}

    public static void main(String[] args) throws IOException {
      Path folder = Path.of(args[0]);
      List<NativeFile> others = new ArrayList<>();
      try (KeptFiles files = new KeptFiles(n -> NativeFile.openToRead(folder.resolve("" + n)))) {
        for (int i = 0; i < FILES / 2; i++) {
          read(files, i);
        }
        try {
          while (true) {
            others.add(NativeFile.openToRead(folder.resolve("0")));
          }
        } catch (PosixException full) {
          // That is what is wanted.
        }
        for (int i = FILES / 2; i < FILES; i++) {
          if (read(files, i) != i) {
            throw new IllegalStateException("another file than " + i);
          }
        }
      }
      System.out.println(Descriptors.OF_PROCESS.most() + " and read on");
    }
  }

  @Test
  void when_others_have_taken_all_descriptors_kept_ones_are_closed_for_a_read() {
    assertThat(outOfDescriptors(120)).isEqualTo("40 and read on");
    assertThat(outOfDescriptors(96)).isEqualTo("32 and read on");
  }

  private String outOfDescriptors(int limit) {
    return Programs.run(
            folder,
            "sh",
            "-c",
            "ulimit -n " + limit + " && exec \"$@\"",
            "sh",
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx32m",
            "-XX:+UseSerialGC",
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
            OutOfDescriptors.class.getName(),
            folder.toString())
        .strip();
  }
}
