package org.gristway.spool;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.PriorityQueue;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * Sorts any number of records in bounded memory: what does not fit is written out in sorted runs,
 * which are merged when reading (external merge sort).
 *
 * <p>A record is a key, compared byte by byte as unsigned numbers, and a payload. Records with
 * equal keys come out in the order in which they went in. One thread at a time. The file is created
 * only when memory does not suffice, and is deleted on close.
 */
public final class SortedSpool implements AutoCloseable {

  /** Enough for some hundred thousand records: most datasets never touch the disk here. */
  public static final int DEFAULT_MEMORY = 24 << 20;

  private static final VarHandle INT =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

  private static final int HEAD = 8; // key length and payload length, in front of each record

  private final Path path;
  private final int memory;
  private byte[] arena = new byte[1 << 12];
  private int used;
  private int[] starts = new int[1 << 8];
  private int records;
  private long count;
  private boolean isSorted;
  private final List<long[]> runs = new ArrayList<>(); // {offset, length} in the file
  private @Nullable FileChannel file;

  public SortedSpool(Path path, int memory) {
    this.path = path;
    this.memory = memory;
  }

  public SortedSpool(Path path) {
    this(path, DEFAULT_MEMORY);
  }

  /** Adds a record; both buffers may be used again at once. */
  public void add(RecordBuffer key, RecordBuffer payload) throws IOException {
    add(key.array(), key.offset(), key.length(), payload);
  }

  /** Adds a record whose key is a whole array. */
  public void add(byte[] key, RecordBuffer payload) throws IOException {
    add(key, 0, key.length, payload);
  }

  private void add(byte[] key, int keyOffset, int keyLength, RecordBuffer payload)
      throws IOException {
    int size = HEAD + keyLength + payload.length();
    if (records > 0 && (used + size > memory || 4L * records > memory / 2)) {
      writeRun();
    }
    reserve(size);
    starts[records++] = used;
    putInt(used, keyLength);
    putInt(used + 4, payload.length());
    System.arraycopy(key, keyOffset, arena, used + HEAD, keyLength);
    System.arraycopy(
        payload.array(), payload.offset(), arena, used + HEAD + keyLength, payload.length());
    used += size;
    count++;
    isSorted = false;
  }

  /** How many records there are. */
  public long count() {
    return count;
  }

  private void reserve(int size) {
    if (arena.length - used < size) {
      arena =
          Arrays.copyOf(arena, (int) Math.max(used + size, Math.min(2L * arena.length, memory)));
    }
    if (records == starts.length) {
      starts = Arrays.copyOf(starts, 2 * records);
    }
  }

  private void putInt(int at, int value) {
    INT.set(arena, at, value);
  }

  private static int getInt(byte[] from, int at) {
    return (int) INT.get(from, at);
  }

  private void writeRun() {
    try {
      writeSorted();
    } catch (IOException failed) {
      throw Failure.io("write " + path, failed);
    }
  }

  private void writeSorted() throws IOException {
    FileChannel out = file;
    if (out == null) {
      out =
          FileChannel.open(
              path,
              StandardOpenOption.CREATE,
              StandardOpenOption.TRUNCATE_EXISTING,
              StandardOpenOption.READ,
              StandardOpenOption.WRITE);
      file = out;
    }
    sortArena();
    long offset = out.size();
    ByteBuffer buffer = ByteBuffer.allocate(1 << 18);
    long at = offset;
    for (int i = 0; i < records; i++) {
      int start = starts[i];
      int size = HEAD + getInt(arena, start) + getInt(arena, start + 4);
      if (buffer.remaining() < size) {
        at = write(out, buffer.flip(), at);
        buffer.clear();
      }
      if (size > buffer.capacity()) {
        at = write(out, ByteBuffer.wrap(arena, start, size), at);
      } else {
        buffer.put(arena, start, size);
      }
    }
    at = write(out, buffer.flip(), at);
    runs.add(new long[] {offset, at - offset});
    used = 0;
    records = 0;
  }

  private static long write(FileChannel out, ByteBuffer buffer, long at) throws IOException {
    while (buffer.hasRemaining()) {
      at += out.write(buffer, at);
    }
    return at;
  }

  private void sortArena() {
    if (!isSorted) {
      mergeSort(starts, new int[records], 0, records);
      isSorted = true;
    }
  }

  /** A stable sort of record positions, which the JDK has only for boxed ones. */
  private void mergeSort(int[] array, int[] scratch, int from, int to) {
    if (to - from <= 12) {
      for (int i = from + 1; i < to; i++) {
        int moving = array[i];
        int j = i - 1;
        for (; j >= from && compare(array[j], moving) > 0; j--) {
          array[j + 1] = array[j];
        }
        array[j + 1] = moving;
      }
      return;
    }
    int middle = (from + to) >>> 1;
    mergeSort(array, scratch, from, middle);
    mergeSort(array, scratch, middle, to);
    if (compare(array[middle - 1], array[middle]) <= 0) {
      return;
    }
    System.arraycopy(array, from, scratch, from, middle - from);
    int left = from;
    int right = middle;
    for (int out = from; left < middle; out++) {
      if (right < to && compare(array[right], scratch[left]) < 0) {
        array[out] = array[right++];
      } else {
        array[out] = scratch[left++];
      }
    }
  }

  private int compare(int one, int other) {
    int oneLength = getInt(arena, one);
    int otherLength = getInt(arena, other);
    int oneKey = one + HEAD;
    int otherKey = other + HEAD;
    if (oneLength >= 8 && otherLength >= 8) { // most keys differ, or end, in their first 8 bytes
      long left = (long) LONG.get(arena, oneKey);
      long right = (long) LONG.get(arena, otherKey);
      if (left != right) {
        return Long.compareUnsigned(left, right);
      }
    }
    return Arrays.compareUnsigned(
        arena, oneKey, oneKey + oneLength, arena, otherKey, otherKey + otherLength);
  }

  /** Writes what is still in memory to the disk, for a spool that is read only later. */
  public void spill() {
    if (records > 0) {
      writeRun();
    }
    arena = new byte[0];
    starts = new int[0];
  }

  /** Reads all records in order. May be called again; adding is over after the first call. */
  public Cursor sorted() throws IOException {
    if (runs.isEmpty()) {
      sortArena();
      return new MemoryCursor();
    }
    spill();
    return new MergeCursor();
  }

  @Override
  public void close() throws IOException {
    arena = new byte[0];
    starts = new int[0];
    FileChannel open = file;
    if (open != null) {
      open.close();
      Files.deleteIfExists(path);
    }
  }

  /** Steps through the records. What {@code key} and {@code payload} return is valid for a step. */
  public abstract static class Cursor {
    final RecordBuffer key = new RecordBuffer();
    final RecordBuffer payload = new RecordBuffer();

    /** Goes to the next record; false when there is none. */
    public abstract boolean next() throws IOException;

    public final RecordBuffer key() {
      return key;
    }

    public final RecordBuffer payload() {
      return payload;
    }

    final void show(byte[] from, int start) {
      int keyLength = getInt(from, start);
      int payloadLength = getInt(from, start + 4);
      key.wrap(from, start + HEAD, keyLength);
      payload.wrap(from, start + HEAD + keyLength, payloadLength);
    }
  }

  private final class MemoryCursor extends Cursor {
    private int at;

    @Override
    public boolean next() {
      if (at == records) {
        return false;
      }
      show(arena, starts[at++]);
      return true;
    }
  }

  private final class MergeCursor extends Cursor {
    private final PriorityQueue<RunReader> heads = new PriorityQueue<>();
    private @Nullable RunReader current;

    MergeCursor() throws IOException {
      // All read buffers together stay within the sorter's memory, however many runs there are.
      int buffer = Math.clamp(memory / runs.size(), 4 << 10, 256 << 10);
      for (int i = 0; i < runs.size(); i++) {
        RunReader reader = new RunReader(i, runs.get(i), buffer);
        if (reader.advance()) {
          heads.add(reader);
        }
      }
    }

    @Override
    public boolean next() throws IOException {
      RunReader last = current;
      if (last != null && last.advance()) {
        heads.add(last);
      }
      current = heads.poll();
      if (current == null) {
        return false;
      }
      show(current.bytes, current.start);
      return true;
    }
  }

  private final class RunReader implements Comparable<RunReader> {
    private final int number;
    private long position;
    private final long end;
    private byte[] bytes;
    private int start; // of the current record
    private int next; // of the record after it
    private int filled;

    RunReader(int number, long[] run, int buffer) {
      this.number = number;
      this.position = run[0];
      this.end = run[0] + run[1];
      this.bytes = new byte[buffer];
    }

    boolean advance() throws IOException {
      start = next;
      if (!ensure(HEAD)) {
        return false;
      }
      int size = HEAD + getInt(bytes, start) + getInt(bytes, start + 4);
      if (!ensure(size)) {
        throw new UncheckedIOException(new IOException("a run ends inside a record: " + path));
      }
      next = start + size;
      return true;
    }

    /** Makes at least {@code count} bytes from the record's start available, if there are any. */
    private boolean ensure(int count) throws IOException {
      if (filled - start >= count) {
        return true;
      }
      byte[] target = count > bytes.length ? new byte[2 * count] : bytes;
      System.arraycopy(bytes, start, target, 0, filled - start);
      bytes = target;
      filled -= start;
      start = 0;
      FileChannel in = Objects.requireNonNull(file);
      while (filled < count && position < end) {
        int wanted = (int) Math.min(bytes.length - filled, end - position);
        int read = in.read(ByteBuffer.wrap(bytes, filled, wanted), position);
        if (read < 0) {
          break;
        }
        filled += read;
        position += read;
      }
      return filled >= count;
    }

    @Override
    public int compareTo(RunReader other) {
      int oneLength = getInt(bytes, start);
      int otherLength = getInt(other.bytes, other.start);
      int order =
          Arrays.compareUnsigned(
              bytes,
              start + HEAD,
              start + HEAD + oneLength,
              other.bytes,
              other.start + HEAD,
              other.start + HEAD + otherLength);
      return order != 0 ? order : Integer.compare(number, other.number);
    }

    @Override
    public boolean equals(@Nullable Object other) {
      return this == other;
    }

    @Override
    public int hashCode() {
      return number;
    }
  }
}
