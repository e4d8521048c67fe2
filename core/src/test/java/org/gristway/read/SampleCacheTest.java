package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.gristway.dataset.Dataset;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.plan.Caching;
import org.gristway.plan.PlanStep.Drop;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What was kept is there until it is dropped, and nothing else is. */
@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SampleCacheTest {

  private static final int SAMPLES = 60;
  private static final int LANES = 3;

  /** What a lane keeps. */
  private record Kept(int lane, long sample, int tier) {}

  @TempDir Path folder;
  private Path disk;
  private Originals originals;
  private Dataset dataset;
  private Tallies tallies;
  private MemoryBudget budget;
  private CacheFile file;
  private SampleCache cache;
  private final List<String> notices = Collections.synchronizedList(new ArrayList<>());
  private final Random random = new Random(Seeds.of("SampleCacheTest"));

  @BeforeEach
  void open() throws IOException {
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = 0; i < SAMPLES; i++) {
      tree.put("sample" + i, Trees.bytes(random, random.nextInt(i % 7 == 0 ? 30_000 : 3_000)));
    }
    originals = Originals.of(Packs.pack(tree, folder.resolve("dataset")));
    dataset = Dataset.open(originals.path());
    disk = Files.createDirectory(folder.resolve("disk"));
    tallies = new Tallies();
    budget = new MemoryBudget(LANES * originals.bytes());
    file = new CacheFile(disk, notices::add);
    cache = cacheIn(file);
  }

  private SampleCache cacheIn(CacheFile place) {
    return new SampleCache(dataset.snapshot(), budget, tallies, place);
  }

  @AfterEach
  void close() throws IOException {
    cache.close();
    file.close();
    assertThat(budget.resident()).isZero();
    assertThat(tallies.get(ReadCounter.RESIDENT_BYTES)).isZero();
    assertThat(Remains.open(disk)).isEmpty();
    tallies.close();
    dataset.close();
  }

  private boolean keep(SampleCache in, Kept kept) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocateFrom(ValueLayout.JAVA_BYTE, originals.data(kept.sample));
      return in.keep(kept.lane, kept.sample, kept.tier, bytes);
    }
  }

  /** True if it is there; then its bytes are its own. */
  private boolean isThere(SampleCache in, long sample, int tier) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(Math.max(1, originals.length(sample)));
      MemorySegment exact = target.asSlice(0, originals.length(sample));
      if (!in.copy(sample, tier, exact)) {
        return false;
      }
      assertThat(exact.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(originals.data(sample));
      return true;
    }
  }

  private Kept any() {
    return new Kept(random.nextInt(LANES), random.nextInt(SAMPLES), random.nextInt(2));
  }

  private long bytesOf(Set<Kept> model, int tier) {
    return model.stream()
        .filter(kept -> kept.tier == tier)
        .mapToLong(kept -> originals.length(kept.sample))
        .sum();
  }

  @Test
  void what_was_kept_is_there_until_it_is_dropped() {
    Set<Kept> model = new HashSet<>();
    for (int i = 0; i < Thorough.count(3_000, 100_000); i++) {
      Kept each = any();
      int choice = random.nextInt(100);
      if (choice == 0) {
        cache.drop(each.lane, Drop.ALL, each.tier);
        model.removeIf(kept -> kept.lane == each.lane && kept.tier == each.tier);
      } else if (choice < 40 && model.add(each)) {
        assertThat(keep(cache, each)).isTrue();
      } else if (choice < 70) {
        cache.drop(each.lane, each.sample, each.tier);
        model.remove(each);
      } else {
        boolean isKept =
            model.stream().anyMatch(kept -> kept.sample == each.sample && kept.tier == each.tier);
        assertThat(isThere(cache, each.sample, each.tier)).isEqualTo(isKept);
      }
      assertThat(budget.resident()).isEqualTo(bytesOf(model, Caching.MEMORY));
      assertThat(tallies.get(ReadCounter.RESIDENT_BYTES)).isEqualTo(budget.resident());
    }
    assertThat(notices).isEmpty();
  }

  @Test
  void copying_goes_on_while_lanes_keep_and_drop() throws InterruptedException {
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    AtomicBoolean isOver = new AtomicBoolean();
    List<Thread> threads = new ArrayList<>();
    for (int lane = 0; lane < LANES; lane++) {
      int own = lane;
      Random ofLane = new Random(random.nextLong());
      threads.add(
          start(
              failures,
              () -> {
                Set<Kept> kept = new HashSet<>();
                for (int i = 0; i < Thorough.count(2_000, 50_000); i++) {
                  Kept each = new Kept(own, ofLane.nextInt(SAMPLES), ofLane.nextInt(2));
                  if (kept.add(each)) {
                    assertThat(keep(cache, each)).isTrue();
                    assertThat(isThere(cache, each.sample, each.tier)).isTrue();
                  } else {
                    kept.remove(each);
                    cache.drop(own, each.sample, each.tier);
                  }
                }
              }));
    }
    List<Thread> readers = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      Random ofReader = new Random(random.nextLong());
      readers.add(
          start(
              failures,
              () -> {
                while (!isOver.get()) {
                  isThere(cache, ofReader.nextInt(SAMPLES), ofReader.nextInt(2));
                }
              }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    isOver.set(true);
    for (Thread reader : readers) {
      reader.join();
    }
    assertThat(failures).isEmpty();
    assertThat(notices).isEmpty();
  }

  private static Thread start(List<Throwable> failures, Runnable work) {
    return Thread.ofPlatform()
        .uncaughtExceptionHandler((_, thrown) -> failures.add(thrown))
        .start(work);
  }

  @Test
  void the_file_has_no_name_and_gives_back_what_is_dropped() throws IOException {
    List<Kept> kept = new ArrayList<>();
    for (long sample = 0; sample < SAMPLES; sample++) {
      Kept each = new Kept((int) sample % LANES, sample, Caching.DISK);
      assertThat(keep(cache, each)).isTrue();
      kept.add(each);
    }
    assertThat(disk).isEmptyDirectory();
    Path file = Remains.descriptors(disk).getFirst();
    assertThat(Files.size(file)).isEqualTo(originals.bytes());
    Collections.shuffle(kept, random);
    long left = originals.bytes();
    for (Kept each : kept.subList(1, SAMPLES)) {
      cache.drop(each.lane, each.sample, each.tier);
      left -= originals.length(each.sample);
    }
    long blocks = 3 * 4096; // those of its ends, and the last of the file
    assertThat(allocated(file)).isBetween(left, left + blocks);
    cache.drop(kept.getFirst().lane, Drop.ALL, Caching.DISK);
    assertThat(Files.size(file)).isZero();
  }

  private static long allocated(Path file) throws IOException {
    Process stat =
        new ProcessBuilder("stat", "-L", "-c", "%b", "/proc/self/fd/0")
            .redirectInput(file.toFile())
            .start();
    return 512
        * Long.parseLong(
            new String(stat.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip());
  }

  @Test
  void what_is_damaged_is_not_there_but_that_of_another_lane_is() throws IOException {
    long sample = 7;
    while (originals.length(sample) == 0) {
      sample++;
    }
    assertThat(keep(cache, new Kept(0, sample, Caching.DISK))).isTrue();
    assertThat(keep(cache, new Kept(1, sample, Caching.DISK))).isTrue();
    try (RandomAccessFile file =
        new RandomAccessFile(Remains.descriptors(disk).getFirst().toFile(), "rw")) {
      file.seek(originals.length(sample)); // the second one, which is looked at first
      file.write(originals.data(sample)[0] ^ 1);
    }
    assertThat(isThere(cache, sample, Caching.DISK)).isTrue();
    cache.drop(0, sample, Caching.DISK);
    assertThat(isThere(cache, sample, Caching.DISK)).isFalse();
    cache.drop(1, sample, Caching.DISK);
    assertThat(notices).isEmpty();
  }

  @Test
  void a_disk_that_cannot_be_written_is_told_once_and_keeps_nothing() throws IOException {
    try (CacheFile none = new CacheFile(Path.of("/proc"), notices::add);
        SampleCache broken = cacheIn(none)) {
      assertThat(keep(broken, new Kept(0, 1, Caching.DISK))).isFalse();
      assertThat(keep(broken, new Kept(0, 2, Caching.DISK))).isFalse();
      assertThat(keep(broken, new Kept(0, 2, Caching.MEMORY))).isTrue();
      assertThat(isThere(broken, 1, Caching.DISK)).isFalse();
      assertThat(isThere(broken, 2, Caching.MEMORY)).isTrue();
    }
    assertThat(notices).singleElement().asString().contains("/proc").doesNotContain("\n");
  }

  @Test
  void a_closed_cache_has_nothing() {
    SampleCache other = cacheIn(file);
    assertThat(keep(other, new Kept(0, 3, Caching.MEMORY))).isTrue();
    other.close();
    assertThat(isThere(other, 3, Caching.MEMORY)).isFalse();
  }
}
