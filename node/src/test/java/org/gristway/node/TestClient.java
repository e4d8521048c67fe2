package org.gristway.node;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.gristway.handover.BatchLayout;

/** A client of a node, over its socket, as the Python client is one. */
final class TestClient implements AutoCloseable {

  static final String VERSION = "1.2.3";

  private final SocketChannel channel;
  private final List<String> notices = new ArrayList<>();
  private long process;

  /** A piece that the node has lent. */
  record Lent(
      long token, int descriptor, long serial, long offset, long size, int first, int count) {}

  TestClient(Path socket) throws IOException {
    channel = SocketChannel.open(StandardProtocolFamily.UNIX);
    channel.connect(UnixDomainSocketAddress.of(socket));
  }

  List<String> notices() {
    return notices;
  }

  /** Sends bytes as they are. */
  void raw(byte[] bytes) throws IOException {
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    while (buffer.hasRemaining()) {
      channel.write(buffer);
    }
  }

  void send(Message message) throws IOException {
    message.write(channel);
  }

  /** The next message that is no notice; those without a text are left out. */
  Message receive() throws IOException {
    Message message = Message.read(channel);
    while (message.kind() == Message.NOTICE) {
      String notice = new String(message.getRest(), StandardCharsets.UTF_8);
      if (!notice.isEmpty()) {
        notices.add(notice);
      }
      message = Message.read(channel);
    }
    return message;
  }

  Message call(Message message) throws IOException {
    send(message);
    return receive();
  }

  static Message hello(String settings, int rank, int batches) {
    return hello(settings, rank, batches, 0, "");
  }

  static Message hello(String settings, int rank, int batches, int version, String snapshotId) {
    return Message.of(Message.HELLO)
        .putInt(Message.PROTOCOL)
        .putText(VERSION)
        .putInt(rank)
        .putInt(batches)
        .putInt(version)
        .putText(snapshotId)
        .putText(settings)
        .putText("");
  }

  /** Says hello, and is welcome: process, samples, bytes, first epoch, first step, two counts. */
  long[] attach(String settings) throws IOException {
    return attach(settings, 0);
  }

  long[] attach(String settings, int rank) throws IOException {
    long[] welcome = expect(Message.WELCOME, call(hello(settings, rank, 2)), 8);
    process = welcome[0];
    return welcome;
  }

  private static long[] expect(int kind, Message reply, int numbers) {
    if (reply.kind() != kind) {
      throw new AssertionError("kind " + reply.kind() + ": " + text(reply));
    }
    return IntStream.range(0, numbers).mapToLong(_ -> reply.getLong()).toArray();
  }

  /** The text of a reply that has nothing else; of a failure, behind the number of its kind. */
  static String text(Message reply) {
    String text = new String(reply.getRest(), StandardCharsets.UTF_8);
    return reply.kind() == Message.FAILED ? (int) text.charAt(0) + " " + text.substring(1) : text;
  }

  static Message batch(int rank, long epoch, long step) {
    return Message.of(Message.BATCH).putInt(rank).putLong(epoch).putLong(step).putInt(1);
  }

  /** The pieces of a reply. */
  static List<Lent> pieces(Message reply) {
    if (reply.kind() != Message.PIECES) {
      throw new AssertionError("kind " + reply.kind() + ": " + text(reply));
    }
    return IntStream.range(0, reply.getInt())
        .mapToObj(
            _ ->
                new Lent(
                    reply.getLong(),
                    reply.getInt(),
                    reply.getLong(),
                    reply.getLong(),
                    reply.getLong(),
                    reply.getInt(),
                    reply.getInt()))
        .toList();
  }

  /** A batch of rank 0. */
  Lent take(long epoch, long step) throws IOException {
    return pieces(call(batch(0, epoch, step))).getFirst();
  }

  /** The samples in a piece, looked up in the node's memory. */
  List<Long> samples(Lent lent) throws IOException {
    Path file = Path.of("/proc/" + process + "/fd/" + lent.descriptor());
    try (FileChannel memory = FileChannel.open(file, StandardOpenOption.READ);
        Arena arena = Arena.ofConfined()) {
      MemorySegment area =
          memory.map(FileChannel.MapMode.READ_ONLY, lent.offset(), lent.size(), arena);
      return IntStream.range(lent.first(), lent.first() + lent.count())
          .mapToObj(place -> BatchLayout.sample(area, place))
          .toList();
    }
  }

  void release(Lent lent) throws IOException {
    send(Message.of(Message.RELEASE).putLong(lent.token()));
  }

  /** Goes as one goes that is killed. */
  @Override
  public void close() throws IOException {
    channel.close();
  }
}
