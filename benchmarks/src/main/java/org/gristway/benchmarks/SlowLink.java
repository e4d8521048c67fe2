package org.gristway.benchmarks;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.gristway.dataset.Workers;

/**
 * Stands between two nodes, each of one rank, and passes on what they say, a latency later. If they
 * are to ask, what a node pushes for a step stays with it until the other is done with the step
 * before and word of that has come: as if the other had asked for it then, in one request for all
 * that this node has of the step. Word of how far a rank has come passes what is held, but nothing
 * that was pushed for a step up to that one.
 */
final class SlowLink implements AutoCloseable {

  private static final int MOVED = 2;
  private static final int PARCEL = 3;
  private static final int BUFFER = 1 << 16;

  /** What was said: in the greeting, and then as in the protocol of peers. */
  private enum Kind {
    GREETING,
    SIGN,
    MOVED,
    PARCEL,
    LAST
  }

  /**
   * Something that was said.
   *
   * @param place that it is about
   * @param came when, by {@link System#nanoTime}
   */
  private record Said(Kind kind, long place, byte[] bytes, long came) {}

  private final ServerSocket server;
  private final InetSocketAddress target;
  private final long latencyNanos;
  private final boolean asks;
  private final List<Socket> sockets = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();

  /**
   * @param target the node that listens
   * @param latencyNanos each way
   */
  SlowLink(InetSocketAddress target, long latencyNanos, boolean asks) throws IOException {
    this.target = target;
    this.latencyNanos = latencyNanos;
    this.asks = asks;
    this.server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    start("slow-link", this::accept);
  }

  /** Where the node that connects finds the other. */
  InetSocketAddress address() {
    return (InetSocketAddress) server.getLocalSocketAddress();
  }

  private synchronized void start(String name, Runnable work) {
    threads.add(Thread.ofPlatform().name(name).daemon().start(work));
  }

  private synchronized Socket opened(Socket socket) throws IOException {
    socket.setTcpNoDelay(true);
    sockets.add(socket);
    return socket;
  }

  private void accept() {
    try {
      Socket connecting = opened(server.accept());
      Socket listening = opened(new Socket(target.getAddress(), target.getPort()));
      Direction there = new Direction(connecting, listening, 44, 32);
      Direction back = new Direction(listening, connecting, 32, 32);
      there.other = back;
      back.other = there;
      for (Direction each : List.of(there, back)) {
        start("slow-link-from", each::read);
        start("slow-link-to", each::write);
      }
    } catch (IOException closed) {
      // The nodes say what is wrong.
    }
  }

  @Override
  public void close() throws IOException {
    server.close();
    List<Thread> all;
    synchronized (this) {
      for (Socket socket : sockets) {
        socket.close();
      }
      all = List.copyOf(threads);
    }
    all.forEach(Thread::interrupt);
    Workers.join(all);
  }

  /** One way. */
  private final class Direction {

    private final Socket from;
    private final Socket to;
    private final int[] greeting; // the lengths of what comes before the intent
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final List<Said> waiting = new ArrayList<>();

    /** When the node that says all this was first known to have come to a place. */
    private final ConcurrentSkipListMap<Long, Long> reached = new ConcurrentSkipListMap<>();

    private Direction other = this; // until there are both

    Direction(Socket from, Socket to, int... greeting) {
      this.from = from;
      this.to = to;
      this.greeting = greeting;
    }

    void read() {
      try (InputStream in = new BufferedInputStream(from.getInputStream(), BUFFER)) {
        for (int length : greeting) {
          add(Kind.GREETING, 0, exactly(in, length));
        }
        byte[] intent = exactly(in, 4);
        add(Kind.GREETING, 0, intent);
        add(Kind.GREETING, 0, exactly(in, ByteBuffer.wrap(intent).getInt()));
        while (true) {
          readMessage(in);
        }
      } catch (IOException ended) {
        add(Kind.LAST, 0, new byte[0]);
      }
    }

    /** As the protocol of peers has it. */
    private void readMessage(InputStream in) throws IOException {
      byte[] kind = exactly(in, 1);
      switch (kind[0]) {
        case 1 -> add(Kind.SIGN, 0, kind);
        case MOVED -> {
          byte[] moved = exactly(in, 20);
          ByteBuffer read = ByteBuffer.wrap(moved).order(ByteOrder.LITTLE_ENDIAN);
          long place = place(read.getLong(4), read.getLong(12));
          reached.putIfAbsent(place, System.nanoTime());
          other.look();
          add(Kind.MOVED, place, join(kind, moved));
        }
        case PARCEL -> {
          byte[] head = exactly(in, 28);
          ByteBuffer read = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
          byte[] table = exactly(in, 20 * read.getInt(24));
          ByteBuffer lengths = ByteBuffer.wrap(table).order(ByteOrder.LITTLE_ENDIAN);
          int bytes = 0;
          for (int at = 12; at < table.length; at += 20) {
            bytes += Math.toIntExact(Math.max(0, lengths.getLong(at)));
          }
          long place = place(read.getLong(8), read.getLong(16));
          add(Kind.PARCEL, place, join(kind, head, table, exactly(in, bytes)));
        }
        case 4 -> add(Kind.LAST, 0, kind);
        default -> throw new IOException("kind " + kind[0]);
      }
    }

    private void add(Kind kind, long place, byte[] bytes) {
      lock.lock();
      try {
        waiting.add(new Said(kind, place, bytes, System.nanoTime()));
        changed.signalAll();
      } finally {
        lock.unlock();
      }
    }

    private void look() {
      lock.lock();
      try {
        changed.signalAll();
      } finally {
        lock.unlock();
      }
    }

    void write() {
      try {
        OutputStream out = to.getOutputStream();
        while (true) {
          Said next = next();
          out.write(next.bytes());
          if (next.kind() == Kind.LAST && next.bytes().length == 0) {
            to.shutdownOutput();
            return;
          }
        }
      } catch (IOException | InterruptedException ended) {
        // Whoever reads on the other side sees the end too.
      }
    }

    /** The next that may go, once it may. */
    private Said next() throws InterruptedException {
      lock.lock();
      try {
        while (true) {
          long now = System.nanoTime();
          long soonest = Long.MAX_VALUE;
          for (int i = 0; i < waiting.size(); i++) {
            if (!isBehindAnother(i)) {
              long at = goesAt(waiting.get(i));
              if (at <= now) {
                return waiting.remove(i);
              }
              soonest = Math.min(soonest, at);
            }
          }
          if (soonest == Long.MAX_VALUE) {
            changed.await();
          } else {
            changed.awaitNanos(soonest - now);
          }
        }
      } finally {
        lock.unlock();
      }
    }

    private boolean isBehindAnother(int index) {
      Said said = waiting.get(index);
      if (!asks) {
        return index > 0;
      }
      for (Said before : waiting.subList(0, index)) {
        boolean passes =
            switch (said.kind()) {
              case SIGN -> true;
              case MOVED -> before.kind() == Kind.PARCEL && before.place() > said.place();
              case PARCEL -> before.kind() == Kind.MOVED || before.kind() == Kind.SIGN;
              case GREETING, LAST -> false;
            };
        if (!passes) {
          return true;
        }
      }
      return false;
    }

    private long goesAt(Said said) {
      long from = said.came();
      if (asks && said.kind() == Kind.PARCEL && said.place() > place(0, 0)) {
        var asked = other.reached.ceilingEntry(said.place() - 1);
        if (asked == null) {
          return Long.MAX_VALUE;
        }
        from = Math.max(from, asked.getValue() + latencyNanos);
      }
      return from + latencyNanos;
    }
  }

  /** A number for a step of an epoch: later ones have larger numbers. */
  private static long place(long epoch, long step) {
    return Math.min(epoch, 1L << 30) * (1L << 32) + step + 1;
  }

  private static byte[] exactly(InputStream in, int length) throws IOException {
    byte[] bytes = in.readNBytes(length);
    if (bytes.length < length) {
      throw new EOFException();
    }
    return bytes;
  }

  private static byte[] join(byte[]... parts) {
    int length = 0;
    for (byte[] part : parts) {
      length += part.length;
    }
    ByteBuffer joined = ByteBuffer.allocate(length);
    for (byte[] part : parts) {
      joined.put(part);
    }
    return joined.array();
  }
}
