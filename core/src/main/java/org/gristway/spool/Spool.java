package org.gristway.spool;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * A file of records, written once from front to back and then read from front to back as often as
 * needed. One thread writes; afterwards each {@link Reader} belongs to one thread at a time.
 */
public final class Spool implements AutoCloseable {

  private static final int BUFFER = 1 << 15;

  private final Path path;
  private @Nullable DataOutputStream out; // there may be thousands of spools: only while writing
  private long count;

  public Spool(Path path) {
    this.path = path;
  }

  public void add(RecordBuffer record) {
    try {
      DataOutputStream to = out;
      if (to == null) {
        to = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path), BUFFER));
        out = to;
      }
      to.writeInt(record.length());
      to.write(record.array(), record.offset(), record.length());
      count++;
    } catch (IOException failed) {
      throw Failure.io("write " + path, failed);
    }
  }

  /** How many records there are. */
  public long count() {
    return count;
  }

  /** Ends writing. */
  @Override
  public void close() {
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
    private final DataInputStream in;
    private final RecordBuffer record = new RecordBuffer();
    private byte[] bytes = new byte[256];
    private long left;

    private Reader(InputStream in, long count) {
      this.in = new DataInputStream(new BufferedInputStream(in, BUFFER));
      this.left = count;
    }

    public boolean hasNext() {
      return left > 0;
    }

    /** The next record; valid until the following call. */
    public RecordBuffer next() throws IOException {
      left--;
      int length = in.readInt();
      if (bytes.length < length) {
        bytes = new byte[Math.max(length, 2 * bytes.length)];
      }
      in.readFully(bytes, 0, length);
      return record.wrap(bytes, 0, length);
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }
}
