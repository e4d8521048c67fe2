package org.gristway.peer;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;

/**
 * The bytes of a connection between two nodes, little-endian: numbers go through buffers, samples
 * past them. One thread may read while another writes; any may close it, which ends both.
 */
final class PeerChannel {

  private static final int BUFFER = 1 << 16;
  private static final long AT_ONCE = 1 << 30; // a ByteBuffer holds no more than 2 GiB

  private final SocketChannel channel;
  private final ByteBuffer in = ByteBuffer.allocateDirect(BUFFER).order(ByteOrder.LITTLE_ENDIAN);
  private final ByteBuffer out = ByteBuffer.allocateDirect(BUFFER).order(ByteOrder.LITTLE_ENDIAN);
  private volatile long heard = System.nanoTime();

  PeerChannel(SocketChannel channel) {
    this.channel = channel;
    in.flip();
  }

  /** When something last came, in nanoseconds. */
  long heard() {
    return heard;
  }

  /** Counts as if something had come. */
  void heardNow() {
    heard = System.nanoTime();
  }

  /** Room for so many bytes of numbers, which are written with {@link #flush} at the latest. */
  ByteBuffer out(int bytes) throws IOException {
    if (out.remaining() < bytes) {
      flush();
    }
    return out;
  }

  void flush() throws IOException {
    out.flip();
    write(out);
    out.clear();
  }

  /** Writes what is in the buffer, and then these bytes. */
  void write(MemorySegment bytes) throws IOException {
    flush();
    for (long at = 0; at < bytes.byteSize(); ) {
      ByteBuffer part = bytes.asSlice(at, Math.min(AT_ONCE, bytes.byteSize() - at)).asByteBuffer();
      at += part.remaining();
      write(part);
    }
  }

  private void write(ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  /** Waits until so many bytes of numbers are there. */
  ByteBuffer in(int bytes) throws IOException {
    if (in.remaining() < bytes) {
      in.compact();
      try {
        while (in.position() < bytes) {
          hear(channel.read(in));
        }
      } finally {
        in.flip();
      }
    }
    return in;
  }

  /** Reads as many bytes as the target has. */
  void read(MemorySegment target) throws IOException {
    for (long at = 0; at < target.byteSize(); ) {
      MemorySegment part = target.asSlice(at, Math.min(AT_ONCE, target.byteSize() - at));
      fill(part.asByteBuffer());
      at += part.byteSize();
    }
  }

  /** Fills a buffer: first with what was read ahead. */
  private void fill(ByteBuffer target) throws IOException {
    int ahead = Math.min(in.remaining(), target.remaining());
    target.put(in.slice(in.position(), ahead));
    in.position(in.position() + ahead);
    while (target.hasRemaining()) {
      hear(channel.read(target));
    }
  }

  /** Reads something for which nobody waits any more. */
  void skip(long bytes) throws IOException {
    for (long left = bytes; left > 0; ) {
      int part = (int) Math.min(left, in(1).remaining());
      in.position(in.position() + part);
      left -= part;
    }
  }

  private void hear(int bytes) throws IOException {
    if (bytes < 0) {
      throw new EOFException("it has closed the connection");
    }
    heardNow();
  }

  /** Has nothing more come: whoever waits for the rest of something goes without. */
  void stopHearing() {
    try {
      channel.shutdownInput();
    } catch (IOException closed) {
      // Then nothing comes either.
    }
  }

  void close() {
    try {
      channel.close();
    } catch (IOException ignored) {
      // Nobody is left who would care.
    }
  }
}
