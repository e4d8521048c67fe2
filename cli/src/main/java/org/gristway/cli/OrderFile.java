package org.gristway.cli;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.gristway.Failure;
import org.gristway.snapshot.Snapshot;

/**
 * What {@code --order} writes: a line for each place that a sample is delivered to, with tabs
 * between epoch, step, rank, requested key and delivered key. Programs read it, so it stays as it
 * is. A run that fails leaves what was written until then.
 */
final class OrderFile implements AutoCloseable {

  private static final int BUFFER = 1 << 16;

  private final OutputStream out;
  private final String name;
  private final boolean isPrinted;
  private final Snapshot snapshot;

  private OrderFile(OutputStream out, String name, boolean isPrinted, Snapshot snapshot) {
    this.out = out;
    this.name = name;
    this.isPrinted = isPrinted;
    this.snapshot = snapshot;
  }

  /** Makes a file, or replaces the one that is there. */
  static OrderFile create(Path file, Snapshot snapshot) {
    if (Files.isDirectory(file)) {
      throw Failure.wrongCall("cannot write the order to %s: it is a folder; name a file", file);
    }
    try {
      OutputStream out = new BufferedOutputStream(Files.newOutputStream(file), BUFFER);
      return new OrderFile(out, file.toString(), false, snapshot);
    } catch (NoSuchFileException missing) {
      throw Failure.wrongCall(
          "cannot write the order to %s: its folder does not exist; make it first", file);
    } catch (IOException failed) {
      throw Failure.io("write the order to " + file, failed);
    }
  }

  /** Writes to standard output. */
  static OrderFile on(Console console, Snapshot snapshot) {
    return new OrderFile(console.out(), "standard output", true, snapshot);
  }

  /** Adds a line. */
  void write(long epoch, long step, int rank, long request, long sample) throws IOException {
    try {
      number(epoch);
      number(step);
      number(rank);
      Text.writeEscaped(snapshot.keyBytes(request), out);
      out.write('\t');
      Text.writeEscaped(snapshot.keyBytes(sample), out);
      out.write('\n');
    } catch (IOException failed) {
      throw explained(failed);
    }
  }

  private void number(long value) throws IOException {
    Text.write(Long.toString(value), out);
    out.write('\t');
  }

  /** Writes what is in memory. */
  void flush() throws IOException {
    try {
      out.flush();
    } catch (IOException failed) {
      throw explained(failed);
    }
  }

  @Override
  public void close() throws IOException {
    flush();
    if (!isPrinted) {
      try {
        out.close();
      } catch (IOException failed) {
        throw explained(failed);
      }
    }
  }

  /** Standard output says itself what is wrong with it. */
  private IOException explained(IOException failed) {
    if (isPrinted) {
      return failed;
    }
    throw Failure.io("write the order to " + name, failed);
  }
}
