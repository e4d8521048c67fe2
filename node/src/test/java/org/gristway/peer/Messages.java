package org.gristway.peer;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import org.gristway.plan.Caching;
import org.gristway.read.Parcel;
import org.gristway.snapshot.Snapshot;

/** What a node could say to another, and the same with changes that nobody could mean. */
final class Messages {

  private static final long[] NUMBERS = {
    0,
    1,
    2,
    3,
    5,
    7,
    255,
    4096,
    4097,
    1 << 20,
    Integer.MAX_VALUE,
    1L << 32,
    Long.MAX_VALUE,
    Long.MIN_VALUE,
    -1,
    -2
  };

  private final Snapshot snapshot;
  private final Random random;
  private final ByteBuffer out = ByteBuffer.allocate(1 << 20).order(ByteOrder.LITTLE_ENDIAN);

  Messages(Snapshot snapshot, Random random) {
    this.snapshot = snapshot;
    this.random = random;
  }

  /** Some messages that node 1 of two with two ranks each could send to node 0. */
  byte[] some(int batch, int room, int asked) {
    out.clear();
    for (int count = 1 + random.nextInt(8); count > 0; count--) {
      switch (random.nextInt(5)) {
        case 0 -> out.put((byte) 1);
        case 1 -> out.put((byte) 2).putInt(theirs()).putLong(0).putLong(random.nextInt(9) - 1);
        case 2 -> parcel(batch, room);
        case 3 ->
            out.put((byte) 6)
                .putLong(random.nextLong())
                .putInt(ours())
                .putLong(sample())
                .putInt(Caching.MEMORY);
        default -> answer(1 + random.nextInt(asked));
      }
    }
    switch (random.nextInt(4)) {
      case 0 -> out.put((byte) 4);
      case 1 -> {
        byte[] why = "node 7 is lost\nand more".getBytes(StandardCharsets.UTF_8);
        out.put((byte) 5).putInt(why.length).put(why);
      }
      default -> {} // it breaks off
    }
    return Arrays.copyOf(out.array(), out.position());
  }

  private int theirs() {
    return 2 + random.nextInt(2);
  }

  private int ours() {
    return random.nextInt(2);
  }

  private long sample() {
    return random.nextLong(snapshot.sampleCount());
  }

  private void parcel(int batch, int room) {
    int count = random.nextInt(batch + 1);
    out.put((byte) 3).putInt(theirs()).putInt(ours());
    out.putLong(0).putLong(random.nextInt(room)).putInt(count);
    int bytes = 0;
    for (int position = 0; position < count; position++) {
      long sample = sample();
      long length = random.nextInt(8) == 0 ? Parcel.DAMAGED : snapshot.length(sample);
      out.putInt(position).putLong(sample).putLong(length);
      bytes += (int) Math.max(0, length);
    }
    noise(bytes);
  }

  /** To the sample of a ticket's number. */
  private void answer(int ticket) {
    boolean isHere = random.nextInt(4) > 0;
    long length = snapshot.length(ticket);
    out.put((byte) 7).putLong(ticket).putLong(isHere ? length : -1);
    noise(isHere ? (int) length : 0);
  }

  private void noise(int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    out.put(bytes);
  }

  /** With up to three changes. */
  byte[] mutated(byte[] valid) {
    byte[] bytes = valid;
    for (int changes = random.nextInt(4); changes > 0; changes--) {
      bytes = change(bytes.clone());
    }
    return bytes;
  }

  private byte[] change(byte[] bytes) {
    if (bytes.length < 9) {
      return Arrays.copyOf(bytes, random.nextInt(40));
    }
    ByteBuffer view = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int at = random.nextInt(Math.min(random.nextBoolean() ? 80 : 4000, bytes.length) - 8);
    long number = NUMBERS[random.nextInt(NUMBERS.length)];
    switch (random.nextInt(6)) {
      case 0 -> view.putLong(at, number);
      case 1 -> view.putInt(at, (int) number);
      case 2 -> bytes[at] = (byte) random.nextInt(9);
      case 3 -> bytes[at] ^= (byte) (1 << random.nextInt(8));
      case 4 -> {
        return Arrays.copyOf(bytes, random.nextInt(bytes.length + 100));
      }
      default -> {
        return Arrays.copyOfRange(bytes, at, bytes.length);
      }
    }
    return bytes;
  }
}
