package org.gristway.node;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import org.gristway.Failure;

/**
 * What a client and a node say to each other: the length of the rest (4 bytes, little-endian like
 * all numbers), a kind (1 byte), and a body that the kind decides. A client sends a request and
 * reads its reply, which notices may precede.
 *
 * <pre>
 * requests
 *    1 hello     protocol 4, version length 4, version, rank 4, batches at once 4,
 *                version of the dataset 4 (0 for the newest), snapshot length 4, its id (empty for any),
 *                settings length 4, settings, state length 4, state, a bit a sample of the set
 *    2 batch     rank 4, epoch 8, step 8, workers 4
 *    3 ask       rank 4, epoch 8, iteration 8, start 8, batch size 4, workers 4, n 4,
 *                n times an index 8
 *    4 release   token 8; no reply
 *    5 describe  n 4, n times a sample 8
 *    6 state     rank 4, epoch 8, step 8
 *    7 stats
 *    8 bye       no reply; what the client has not released, it goes on to use
 *    9 classes
 * replies
 *   16 welcome      process 8, samples 8, bytes 8, first epoch 8, first step 8,
 *                   steps of that epoch 8, steps of the others 8, version of the dataset 8,
 *                   its snapshot's id
 *   17 pieces       n 4, n times: token 8, descriptor 4, serial 8, offset 8, area bytes 8,
 *                   first place 4, places 4
 *   18 description  for each sample: key length 4, key, parts 4, for each: name length 4, name,
 *                   end 8
 *   19 text         in answer to state, stats and classes; classes are, for each name, its number in
 *                   digits, a zero byte, the name and a zero byte
 *   20 over         the epoch has no such step
 *   21 failed       kind 1 (its number in {@link Failure}), text
 *   22 notice       text, or none while a request waits; before any other reply
 *   23 full         text; there is no room for the batch before others are released: ask again
 * </pre>
 *
 * <p>Pieces are stretches of places of batches: their areas are in the memory file {@code
 * /proc/<node>/fd/<descriptor>}. A serial is never given twice, so that it tells one file from the
 * next. A token stands for the memory of a piece until it is released.
 */
final class Message {

  static final int HELLO = 1;
  static final int BATCH = 2;
  static final int ASK = 3;
  static final int RELEASE = 4;
  static final int DESCRIBE = 5;
  static final int STATE = 6;
  static final int STATS = 7;
  static final int BYE = 8;
  static final int CLASSES = 9;

  static final int WELCOME = 16;
  static final int PIECES = 17;
  static final int DESCRIPTION = 18;
  static final int TEXT = 19;
  static final int OVER = 20;
  static final int FAILED = 21;
  static final int NOTICE = 22;
  static final int FULL = 23;

  /** Both sides must have the same; it changes with what is written above. */
  static final int PROTOCOL = 3;

  /** A set of samples has a bit each: this is enough for 2 billion. */
  private static final int MOST_BYTES = 256 << 20;

  private static final int HEAD = 5;

  private final int kind;
  private ByteBuffer body;

  private Message(int kind, ByteBuffer body) {
    this.kind = kind;
    this.body = body.order(ByteOrder.LITTLE_ENDIAN);
  }

  /** An empty message, to be put into. */
  static Message of(int kind) {
    return new Message(kind, ByteBuffer.allocate(64));
  }

  /**
   * The next message of a channel.
   *
   * @throws EOFException if there is none
   * @throws IOException if it is none of ours
   * @throws Failure (environment) if there is no memory for it; it is skipped then
   */
  static Message read(ReadableByteChannel from) throws IOException {
    ByteBuffer head = fill(from, ByteBuffer.allocate(HEAD).order(ByteOrder.LITTLE_ENDIAN));
    int length = head.getInt() - 1;
    if (length < 0 || length > MOST_BYTES) {
      throw new IOException("a message of " + length + " bytes: the other side is no client");
    }
    int kind = head.get();
    ByteBuffer body;
    try {
      body = ByteBuffer.allocate(length);
    } catch (OutOfMemoryError tooMuch) {
      skip(from, length); // so that the answer is waited for
      throw heapTooSmall();
    }
    return new Message(kind, fill(from, body));
  }

  /** What a client is told when the node cannot hold what it wants. */
  static Failure heapTooSmall() {
    return Failure.environment(
        "the node's heap is too small for this dataset: set GRISTWAY_JAVA_OPTS=-Xmx1g, or more");
  }

  private static void skip(ReadableByteChannel from, int length) throws IOException {
    ByteBuffer some = ByteBuffer.allocate(4096);
    for (int left = length; left > 0; left -= some.capacity()) {
      fill(from, some.clear().limit(Math.min(left, some.capacity())));
    }
  }

  private static ByteBuffer fill(ReadableByteChannel from, ByteBuffer buffer) throws IOException {
    while (buffer.hasRemaining()) {
      if (from.read(buffer) < 0) {
        throw new EOFException();
      }
    }
    return buffer.flip();
  }

  /** Sends it. */
  void write(WritableByteChannel to) throws IOException {
    int length = body.position();
    ByteBuffer whole = ByteBuffer.allocate(HEAD + length).order(ByteOrder.LITTLE_ENDIAN);
    whole.putInt(length + 1).put((byte) kind).put(body.array(), 0, length).flip();
    while (whole.hasRemaining()) {
      to.write(whole);
    }
  }

  int kind() {
    return kind;
  }

  int getInt() {
    return body.getInt();
  }

  long getLong() {
    return body.getLong();
  }

  /** Bytes behind their length. */
  byte[] getBytes() {
    int length = body.getInt();
    if (length < 0 || length > body.remaining()) {
      throw Failure.damaged("a message says that %d bytes follow, and they do not", length);
    }
    byte[] bytes = new byte[length];
    body.get(bytes);
    return bytes;
  }

  /** Text behind its length. */
  String getText() {
    return new String(getBytes(), StandardCharsets.UTF_8);
  }

  /** All that is left. */
  byte[] getRest() {
    byte[] bytes = new byte[body.remaining()];
    body.get(bytes);
    return bytes;
  }

  /** Numbers behind their count. */
  long[] getLongs() {
    int count = body.getInt();
    if (count < 0 || count > body.remaining() / Long.BYTES) {
      throw Failure.damaged("a message says that %d numbers follow, and they do not", count);
    }
    long[] numbers = new long[count];
    body.asLongBuffer().get(numbers);
    body.position(body.position() + count * Long.BYTES);
    return numbers;
  }

  Message putByte(int value) {
    room(1).put((byte) value);
    return this;
  }

  Message putInt(int value) {
    room(Integer.BYTES).putInt(value);
    return this;
  }

  Message putLong(long value) {
    room(Long.BYTES).putLong(value);
    return this;
  }

  /** Text up to the end of the message. */
  Message putRest(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    room(bytes.length).put(bytes);
    return this;
  }

  /** Text behind its length. */
  Message putText(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    putInt(bytes.length);
    room(bytes.length).put(bytes);
    return this;
  }

  private ByteBuffer room(int bytes) {
    if (body.remaining() < bytes) {
      ByteBuffer larger =
          ByteBuffer.allocate(Math.max(2 * body.capacity(), body.position() + bytes));
      body = larger.order(ByteOrder.LITTLE_ENDIAN).put(body.flip());
    }
    return body;
  }
}
