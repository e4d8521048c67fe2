package org.gristway.spool;

import java.io.IOException;
import java.nio.file.Path;

/**
 * Puts pairs of numbers in the order of their positions: each position from 0 up is given exactly
 * once, in any order, and then all are read in order.
 *
 * <p>A few million are held in memory, each written straight to its place. More are sorted through
 * a spool: writing them to their places in a mapped file would fetch a page from the disk for
 * nearly every one.
 */
public final class Reordering implements AutoCloseable {

  private static final long MOST_IN_MEMORY = 1 << 21;

  private final long[] pairs;
  private final SortedSpool spool;
  private final boolean inMemory;
  private final RecordBuffer key = new RecordBuffer();
  private final RecordBuffer payload = new RecordBuffer();

  public Reordering(Path path, long count) {
    this.inMemory = count <= MOST_IN_MEMORY;
    this.pairs = new long[inMemory ? 2 * (int) count : 0];
    this.spool = new SortedSpool(path);
  }

  public void put(long position, long first, long second) throws IOException {
    if (inMemory) {
      pairs[2 * (int) position] = first;
      pairs[2 * (int) position + 1] = second;
    } else {
      spool.add(
          key.clear().putSortable(position), payload.clear().putNumber(first).putNumber(second));
    }
  }

  /** Reads the pairs in order, once all positions have been given. */
  public Cursor inOrder() throws IOException {
    return inMemory ? new MemoryCursor() : new SpoolCursor();
  }

  /** Steps through the pairs. */
  public abstract static class Cursor {
    long first;
    long second;

    /** Goes to the next pair; false when there is none. */
    public abstract boolean next() throws IOException;

    public final long first() {
      return first;
    }

    public final long second() {
      return second;
    }
  }

  private final class MemoryCursor extends Cursor {
    private int at;

    @Override
    public boolean next() {
      if (at == pairs.length) {
        return false;
      }
      first = pairs[at++];
      second = pairs[at++];
      return true;
    }
  }

  private final class SpoolCursor extends Cursor {
    private final SortedSpool.Cursor sorted = spool.sorted();

    SpoolCursor() throws IOException {}

    @Override
    public boolean next() throws IOException {
      if (!sorted.next()) {
        return false;
      }
      first = sorted.payload().takeNumber();
      second = sorted.payload().takeNumber();
      return true;
    }
  }

  @Override
  public void close() throws IOException {
    spool.close();
  }
}
