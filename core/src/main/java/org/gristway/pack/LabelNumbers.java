package org.gristway.pack;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import org.gristway.Failure;
import org.gristway.chunk.Key;
import org.gristway.chunk.LittleEndian;
import org.gristway.os.NativeFile;
import org.gristway.snapshot.Snapshot;
import org.gristway.spool.RecordBuffer;
import org.gristway.spool.SortedSpool;
import org.gristway.spool.Spool;
import org.jspecify.annotations.Nullable;

/**
 * The numbers of class names: those that a dataset has already stay; new ones follow, in the order
 * of their bytes, or are refused if another dataset is to be followed. Kept in a mapped file, since
 * in some datasets every sample has a folder of its own.
 */
final class LabelNumbers implements AutoCloseable {

  private static final int RECORD = 12; // u64 end of the name, i32 number

  // Where a number comes from.
  private static final int NUMBERING = 0;
  private static final int EXISTING = 1;

  private final Arena arena = Arena.ofShared();
  private final MemorySegment table;
  private final MemorySegment names;
  private final long count;
  private byte[] lastName = new byte[0];
  private int lastNumber = -1;

  /**
   * @param existing the dataset that is appended to, if there is one
   * @param numbering the dataset whose numbers hold, if there is one
   * @param of what the user called that
   * @param classes the names found in each source, in any order, any number of times
   */
  LabelNumbers(
      Path scratch,
      @Nullable Snapshot existing,
      @Nullable Snapshot numbering,
      @Nullable Path of,
      Iterable<Spool> classes)
      throws IOException {
    try (SortedSpool sorted = new SortedSpool(scratch.resolve("classes"))) {
      addNumbers(numbering, NUMBERING, sorted);
      addNumbers(existing, EXISTING, sorted);
      RecordBuffer payload = new RecordBuffer();
      for (Spool spool : classes) {
        try (Spool.Reader reader = spool.read()) {
          while (reader.hasNext()) {
            sorted.add(reader.next().takeBytes(), payload);
          }
        }
      }
      long[] sizes = measure(sorted);
      this.count = sizes[0];
      this.table = map(scratch.resolve("class-numbers"), count * RECORD);
      this.names = map(scratch.resolve("class-names"), sizes[1]);
      fill(sorted, existing == null ? 0 : existing.namedLabelCount(), of);
    }
  }

  private static void addNumbers(@Nullable Snapshot dataset, int origin, SortedSpool sorted)
      throws IOException {
    RecordBuffer payload = new RecordBuffer();
    for (int label = 0; dataset != null && label < dataset.namedLabelCount(); label++) {
      payload.clear().putNumber(label).putNumber(origin);
      String name = dataset.labelName(label).orElse(null);
      if (name != null) {
        sorted.add(name.getBytes(StandardCharsets.UTF_8), payload);
      }
    }
  }

  private MemorySegment map(Path path, long size) throws IOException {
    if (size == 0) {
      return MemorySegment.NULL;
    }
    try (NativeFile file = NativeFile.create(path)) {
      file.allocate(size);
    }
    try (FileChannel channel =
        FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, size, arena);
    }
  }

  /** Returns the number of different names and the bytes they take. */
  private static long[] measure(SortedSpool sorted) throws IOException {
    long[] sizes = new long[2];
    byte @Nullable [] last = null;
    SortedSpool.Cursor cursor = sorted.sorted();
    while (cursor.next()) {
      byte[] name = bytes(cursor.key());
      if (!Arrays.equals(name, last)) {
        sizes[0]++;
        sizes[1] += name.length;
        last = name;
      }
    }
    return sizes;
  }

  private void fill(SortedSpool sorted, int firstNew, @Nullable Path of) throws IOException {
    int next = firstNew;
    int number = 0;
    long entry = -1;
    long end = 0;
    byte @Nullable [] last = null;
    SortedSpool.Cursor cursor = sorted.sorted();
    while (cursor.next()) {
      byte[] name = bytes(cursor.key());
      boolean isKnown = cursor.payload().hasMore();
      int known = isKnown ? (int) cursor.payload().takeNumber() : 0;
      if (Arrays.equals(name, last)) { // numbers that hold were put in first, and come out first
        if (isKnown && known != number) {
          throw Failure.wrongCall(
              "the class '%s' has the number %d in the dataset that is appended to and %d in %s;"
                  + " leave --classes-of out, or pack the dataset again with it",
              Key.escape(name), known, number, of);
        }
        continue;
      }
      if (of != null && !(isKnown && cursor.payload().takeNumber() == NUMBERING)) {
        throw Failure.wrongCall(
            "'%s' is no class of %s, which --classes-of names; rename the folder or take it out,"
                + " or pack that dataset again with such a class",
            Key.escape(name), of);
      }
      last = name;
      entry++;
      MemorySegment.copy(name, 0, names, ValueLayout.JAVA_BYTE, end, name.length);
      end += name.length;
      number = isKnown ? known : next++;
      LittleEndian.putLong(table, entry * RECORD, end);
      LittleEndian.putInt(table, entry * RECORD + 8, number);
    }
  }

  private static byte[] bytes(RecordBuffer key) {
    return Arrays.copyOfRange(key.array(), key.offset(), key.offset() + key.length());
  }

  /** The number of a class. One thread at a time. */
  int of(byte[] name) {
    if (!Arrays.equals(name, lastName)) {
      lastNumber = find(name);
      lastName = name;
    }
    return lastNumber;
  }

  private int find(byte[] name) {
    long low = 0;
    long high = count - 1;
    while (low <= high) {
      long middle = (low + high) >>> 1;
      long start = middle == 0 ? 0 : LittleEndian.getLong(table, (middle - 1) * RECORD);
      long end = LittleEndian.getLong(table, middle * RECORD);
      byte[] here = names.asSlice(start, end - start).toArray(ValueLayout.JAVA_BYTE);
      int order = Arrays.compareUnsigned(here, name);
      if (order == 0) {
        return LittleEndian.getInt(table, middle * RECORD + 8);
      }
      if (order < 0) {
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    throw new IllegalStateException(
        "a class was not listed: " + new String(name, StandardCharsets.UTF_8));
  }

  @Override
  public void close() {
    arena.close();
  }
}
