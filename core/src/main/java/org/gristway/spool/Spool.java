package org.gristway.spool;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * A file of records, written once from front to back and then read from front to back as often as
 * needed. One thread writes; afterwards each {@link Reader} belongs to one thread at a time.
 *
 * <p>A file is made when the first record comes, and a buffer is held only while writing: there may
 * be thousands of spools.
 */
public final class Spool implements AutoCloseable {

  private static final int BUFFER = 1 << 15;

  private final Path path;
  private @Nullable OutputStream out;
  private final RecordBuffer buffer = new RecordBuffer();
  private long count;

  public Spool(Path path) {
    this.path = path;
  }

  public void add(RecordBuffer record) {
    buffer.putBytes(record);
    count++;
    if (buffer.length() >= BUFFER) {
      flush();
    }
  }

  private void flush() {
    try {
      OutputStream to = out;
      if (to == null) {
        to = Files.newOutputStream(path);
        out = to;
      }
      to.write(buffer.array(), buffer.offset(), buffer.length());
      buffer.clear();
    } catch (IOException failed) {
      throw Failure.io("write " + path, failed);
    }
  }

  /** How many records there are. */
  public long count() {
    return count;
  }

  /** Ends writing. The file is closed also where what is left cannot be written. */
  @Override
  public void close() {
    try {
      if (buffer.length() > 0) {
        flush();
      }
    } finally {
      buffer.free();
      closeFile();
    }
  }

  private void closeFile() {
    try {
      if (out != null) {
        out.close();
        out = null;
      }
    } catch (IOException failed) {
      throw Failure.io("write " + path, failed);
    }
  }

  public Reader read() throws IOException {
    return count == 0 ? emptyReader() : new Reader(Files.newInputStream(path), count);
  }

  /** Reads no records at all. */
  public static Reader emptyReader() {
    return new Reader(InputStream.nullInputStream(), 0);
  }

  /** Reads the records in the order in which they were written. */
  public static final class Reader implements AutoCloseable {
    private final InputStream in;
    private final RecordBuffer record = new RecordBuffer();
    private final RecordBuffer length = new RecordBuffer();
    private byte[] bytes;
    private int position;
    private int filled;
    private long left;

    private Reader(InputStream in, long count) {
      this.in = in;
      this.bytes = new byte[count == 0 ? 0 : BUFFER];
      this.left = count;
    }

    public boolean hasNext() {
      return left > 0;
    }

    /** The next record; valid until the following call. */
    public RecordBuffer next() throws IOException {
      left--;
      fill(1);
      while (!RecordBuffer.isWholeNumber(bytes, position, filled)) {
        fill(filled - position + 1);
      }
      length.wrap(bytes, position, filled - position);
      int size = (int) length.takeNumber();
      position = length.position();
      fill(size);
      record.wrap(bytes, position, size);
      position += size;
      return record;
    }

    /** Makes at least so many bytes available. */
    private void fill(int wanted) throws IOException {
      if (filled - position >= wanted) {
        return;
      }
      byte[] target = wanted > bytes.length ? new byte[2 * wanted] : bytes;
      System.arraycopy(bytes, position, target, 0, filled - position);
      bytes = target;
      filled -= position;
      position = 0;
      while (filled < wanted) {
        int count = in.read(bytes, filled, bytes.length - filled);
        if (count < 0) {
          throw new EOFException("a spool ends inside a record");
        }
        filled += count;
      }
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }
}
