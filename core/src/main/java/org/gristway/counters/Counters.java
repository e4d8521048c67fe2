package org.gristway.counters;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.os.SharedMemory;

/**
 * The counters of a process, in shared memory that dies with it:
 *
 * <pre>
 *   0  magic, 8 bytes
 *   8  how many counters there are, 8 bytes
 *  64  the counters, 64 bytes each: name (UTF-8, filled up with zeros) 56, value 8
 * </pre>
 *
 * <p>The names are there before the magic is. Any thread may count; a reader in another process
 * sees each value as it was a moment ago, and not all of them at the same moment.
 */
public final class Counters implements AutoCloseable {

  private static final String FILE_NAME = "gristway-counters";
  private static final long MAGIC = 0x31_73_74_6e_75_6f_43_47L; // "GCounts1"
  private static final int HEADER = 64;
  private static final int RECORD = 64;
  private static final int NAME_BYTES = 56;
  private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

  private final SharedMemory memory;
  private final MemorySegment mapped;
  private final List<Counter> counters = new ArrayList<>();

  /** A named number. Any thread may change it. */
  public static final class Counter {
    private final MemorySegment mapped;
    private final long at;

    private Counter(MemorySegment mapped, long at) {
      this.mapped = mapped;
      this.at = at;
    }

    public void add(long amount) {
      long unused = (long) LONG.getAndAdd(mapped, at, amount);
    }

    public long get() {
      return (long) LONG.getVolatile(mapped, at);
    }
  }

  private Counters(SharedMemory memory, MemorySegment mapped) {
    this.memory = memory;
    this.mapped = mapped;
  }

  /** Makes counters with these names, all zero. */
  public static Counters create(List<String> names) {
    try {
      SharedMemory memory = SharedMemory.create(FILE_NAME);
      long bytes = HEADER + (long) RECORD * names.size();
      memory.extend(bytes);
      Counters counters = new Counters(memory, memory.map(0, bytes));
      for (String name : names) {
        byte[] text = name.getBytes(StandardCharsets.UTF_8);
        if (text.length > NAME_BYTES) {
          throw new IllegalArgumentException(name);
        }
        long at = counters.recordAt(counters.counters.size());
        MemorySegment.copy(text, 0, counters.mapped, ValueLayout.JAVA_BYTE, at, text.length);
        counters.counters.add(new Counter(counters.mapped, at + NAME_BYTES));
      }
      counters.mapped.set(ValueLayout.JAVA_LONG, 8, names.size());
      LONG.setRelease(counters.mapped, 0L, MAGIC);
      return counters;
    } catch (IOException failed) {
      throw Failure.io("make shared memory for counters", failed);
    }
  }

  private long recordAt(int index) {
    return HEADER + (long) RECORD * index;
  }

  /** A counter by its place in the list of names. */
  public Counter get(int index) {
    return counters.get(index);
  }

  /**
   * The values that a process counts now, in the order of their names; none if it counts nothing.
   */
  public static List<Map<String, Long>> of(long process) {
    List<Map<String, Long>> all = new ArrayList<>();
    try (Stream<Path> descriptors = Files.list(Path.of("/proc/" + process + "/fd"))) {
      for (Path descriptor : descriptors.sorted().toList()) {
        if (isCounters(descriptor)) {
          readInto(all, descriptor);
        }
      }
    } catch (IOException gone) {
      // The process has ended, or is another user's: it has no counters for us.
    }
    return all;
  }

  private static void readInto(List<Map<String, Long>> all, Path descriptor) {
    try {
      all.add(read(descriptor));
    } catch (IOException closed) {
      // It has ended between listing and opening; others may be there.
    }
  }

  private static boolean isCounters(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString().startsWith("/memfd:" + FILE_NAME);
    } catch (IOException closed) {
      return false;
    }
  }

  private static String name(MemorySegment entry) {
    byte[] bytes = entry.asSlice(0, NAME_BYTES).toArray(ValueLayout.JAVA_BYTE);
    return new String(bytes, StandardCharsets.UTF_8).replace("\0", "");
  }

  private static Map<String, Long> read(Path descriptor) throws IOException {
    Map<String, Long> values = new LinkedHashMap<>();
    try (SharedMemory memory = SharedMemory.open(descriptor)) {
      if (memory.size() < HEADER) {
        return values;
      }
      MemorySegment mapped = memory.map(0, memory.size());
      if ((long) LONG.getAcquire(mapped, 0L) != MAGIC) {
        return values;
      }
      long count =
          Math.min(mapped.get(ValueLayout.JAVA_LONG, 8), (memory.size() - HEADER) / RECORD);
      for (long i = 0; i < count; i++) {
        MemorySegment entry = mapped.asSlice(HEADER + RECORD * i, RECORD);
        values.put(name(entry), (long) LONG.getVolatile(entry, (long) NAME_BYTES));
      }
    }
    return values;
  }

  @Override
  public void close() {
    try {
      memory.close();
    } catch (IOException ignored) {
      // Nobody loses anything by it.
    }
  }
}
