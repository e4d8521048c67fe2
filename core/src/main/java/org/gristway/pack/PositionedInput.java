package org.gristway.pack;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A buffered stream over a file that knows where it is and skips by seeking. */
final class PositionedInput extends InputStream {

  private final FileChannel channel;
  private final ByteBuffer buffer = ByteBuffer.allocate(1 << 16).flip();
  private long bufferEnd; // the file offset behind the buffer

  PositionedInput(Path path) throws IOException {
    this.channel = FileChannel.open(path, StandardOpenOption.READ);
  }

  /** The offset of the next byte. */
  long position() {
    return bufferEnd - buffer.remaining();
  }

  long size() throws IOException {
    return channel.size();
  }

  void seek(long position) {
    buffer.limit(0);
    bufferEnd = position;
  }

  private boolean fill() throws IOException {
    if (!buffer.hasRemaining()) {
      buffer.clear();
      int count = channel.read(buffer, bufferEnd);
      buffer.flip();
      bufferEnd += Math.max(count, 0);
    }
    return buffer.hasRemaining();
  }

  @Override
  public int read() throws IOException {
    return fill() ? buffer.get() & 0xff : -1;
  }

  @Override
  public int read(byte[] target, int offset, int length) throws IOException {
    if (length == 0) {
      return 0;
    }
    if (!fill()) {
      return -1;
    }
    int count = Math.min(length, buffer.remaining());
    buffer.get(target, offset, count);
    return count;
  }

  @Override
  public long skip(long count) throws IOException {
    long possible = Math.clamp(count, 0, Math.max(0, channel.size() - position()));
    if (possible <= buffer.remaining()) {
      buffer.position(buffer.position() + (int) possible);
    } else {
      seek(position() + possible);
    }
    return possible;
  }

  @Override
  public int available() {
    return buffer.remaining();
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
