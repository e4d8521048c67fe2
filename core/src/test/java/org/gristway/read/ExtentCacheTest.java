package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Whatever is asked for comes as it is in the store, which is read for what is not kept. */
@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ExtentCacheTest {

  private static final int PAGE = 512;
  private static final int PAGES = 64; // of a chunk
  private static final int CHUNKS = 3;
  private static final long ALL = (long) CHUNKS * PAGES * PAGE;

  @TempDir Path disk;
  private final Random random = new Random(Seeds.of("ExtentCacheTest"));
  private final List<byte[]> chunks = new ArrayList<>();
  private final AtomicLong reads = new AtomicLong();
  private final Tallies tallies = new Tallies();
  private final List<String> notices = Collections.synchronizedList(new ArrayList<>());

  ExtentCacheTest() {
    for (int i = 0; i < CHUNKS; i++) {
      byte[] bytes = new byte[PAGES * PAGE];
      random.nextBytes(bytes);
      chunks.add(bytes);
    }
  }

  @AfterEach
  void nothing_is_left() {
    assertThat(tallies.get(ReadCounter.RESIDENT_BYTES)).isZero();
    assertThat(Remains.descriptors(disk)).isEmpty();
    assertThat(notices).isEmpty();
    tallies.close();
  }

  private final class Store implements Storage {
    @Override
    public ChunkSource reading(long epoch, boolean again) {
      return (extent, memory) -> {
        reads.incrementAndGet();
        MemorySegment chunk = MemorySegment.ofArray(chunks.get(extent.chunk()));
        MemorySegment.copy(chunk, extent.offset(), memory, 0, extent.length());
      };
    }

    @Override
    public void distrust(Extent pages) {}
  }

  private ExtentCache cache(Cache room, MemoryBudget budget, CacheFile file) {
    return new ExtentCache(new Store(), room, budget, tallies, file);
  }

  private Extent anyExtent() {
    int start = random.nextInt(PAGES);
    int pages = 1 + random.nextInt(Math.min(12, PAGES - start));
    return new Extent(random.nextInt(CHUNKS), (long) start * PAGE, (long) pages * PAGE);
  }

  /** Reads an extent; true if the store was read for it. */
  private boolean isRead(ExtentCache cache, Extent extent) {
    long before = reads.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(extent.length() + PAGE);
      cache.reading(0, false).fill(extent, memory);
      byte[] due = new byte[(int) extent.length()];
      System.arraycopy(chunks.get(extent.chunk()), (int) extent.offset(), due, 0, due.length);
      byte[] came = memory.asSlice(0, due.length).toArray(ValueLayout.JAVA_BYTE);
      assertThat(came).as("%s", extent).isEqualTo(due);
    }
    return reads.get() > before;
  }

  @Test
  void with_room_for_all_the_store_is_read_for_what_never_was() throws IOException {
    for (int i = 0; i < Thorough.count(20, 500); i++) {
      BitSet[] kept = {new BitSet(), new BitSet(), new BitSet()};
      // Parts that overlap are kept twice until one lies inside another.
      long inMemory = random.nextLong(2 * ALL);
      Cache room = new Cache(inMemory, 20 * ALL, disk);
      MemoryBudget budget = new MemoryBudget(inMemory);
      try (CacheFile file = new CacheFile(disk, notices::add);
          ExtentCache cache = cache(room, budget, file)) {
        for (int j = 0; j < 300; j++) {
          Extent extent = anyExtent();
          BitSet ofChunk = kept[extent.chunk()];
          int start = (int) extent.offset() / PAGE;
          int end = start + (int) extent.length() / PAGE;
          assertThat(isRead(cache, extent)).isEqualTo(ofChunk.nextClearBit(start) < end);
          ofChunk.set(start, end);
          assertThat(tallies.get(ReadCounter.RESIDENT_BYTES)).isEqualTo(budget.resident());
        }
      }
      assertThat(budget.resident()).isZero();
    }
  }

  /** All extents, none of which overlap, in any order. */
  private List<Extent> extents() {
    List<Extent> all = new ArrayList<>();
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
      for (long offset = 0; offset < PAGES * PAGE; offset += 4 * PAGE) {
        all.add(new Extent(chunk, offset, 4 * PAGE));
      }
    }
    Collections.shuffle(all, random);
    return all;
  }

  @Test
  void what_comes_first_is_kept_while_there_is_room() throws IOException {
    for (int i = 0; i < Thorough.count(20, 500); i++) {
      Cache room = new Cache(random.nextLong(ALL), random.nextLong(ALL), disk);
      MemoryBudget budget = new MemoryBudget(room.memory());
      try (CacheFile file = new CacheFile(disk, notices::add);
          ExtentCache cache = cache(room, budget, file)) {
        List<Extent> first = extents();
        first.forEach(extent -> isRead(cache, extent));
        long inMemory = budget.resident();
        long onDisk = Files.size(Remains.descriptors(disk).getFirst());
        assertThat(onDisk).isLessThanOrEqualTo(room.disk());
        long kept = (inMemory + onDisk) / (4 * PAGE);
        for (Extent extent : extents()) {
          assertThat(isRead(cache, extent)).isEqualTo(first.indexOf(extent) >= kept);
        }
      }
    }
  }

  @Test
  void what_is_distrusted_is_read_again_and_nothing_else() throws IOException {
    MemoryBudget budget = new MemoryBudget(ALL / 2);
    try (CacheFile file = new CacheFile(disk, notices::add);
        ExtentCache cache = cache(new Cache(ALL / 2, ALL, disk), budget, file)) {
      List<Extent> all = extents();
      all.forEach(extent -> isRead(cache, extent));
      for (int i = 0; i < 10; i++) {
        Extent bad = all.get(random.nextInt(all.size()));
        cache.distrust(new Extent(bad.chunk(), bad.offset() + PAGE, PAGE));
        for (Extent extent : all) {
          assertThat(isRead(cache, extent)).isEqualTo(extent.equals(bad));
        }
      }
    }
  }

  @Test
  void any_threads_may_read_at_once() throws InterruptedException, IOException {
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    Cache room = new Cache(ALL / 2, ALL, disk);
    MemoryBudget budget = new MemoryBudget(room.memory());
    List<List<Extent>> wanted = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      List<Extent> ofThread = new ArrayList<>();
      for (int j = 0; j < Thorough.count(2_000, 50_000); j++) {
        ofThread.add(anyExtent());
      }
      wanted.add(ofThread);
    }
    try (CacheFile file = new CacheFile(disk, notices::add);
        ExtentCache cache = cache(room, budget, file)) {
      List<Thread> threads = new ArrayList<>();
      for (List<Extent> ofThread : wanted) {
        threads.add(
            Thread.ofPlatform()
                .uncaughtExceptionHandler((_, thrown) -> failures.add(thrown))
                .start(
                    () -> {
                      for (Extent extent : ofThread) {
                        isRead(cache, extent);
                        if (extent.length() == PAGE) {
                          cache.distrust(extent);
                        }
                      }
                    }));
      }
      for (Thread thread : threads) {
        thread.join();
      }
    }
    assertThat(failures).isEmpty();
  }
}
