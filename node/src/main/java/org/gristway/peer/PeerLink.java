package org.gristway.peer;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.gristway.dataset.Workers;
import org.gristway.read.Parcel;
import org.gristway.read.PostOffice;
import org.jspecify.annotations.Nullable;

/**
 * A connection between two nodes that have greeted each other. One thread writes what is to be
 * said, in its order, and that this node is alive when there is nothing to say; another reads what
 * the peer says. How much waits to be written is bounded by what the ranks of the peer have room
 * for, and by how many samples they ask for at once. What is said is neither encrypted nor signed:
 * a network on which others can get in between two nodes must be kept from them, as for the
 * trainers' own traffic.
 *
 * <pre>
 * kind 1, and then (numbers are little-endian)
 *   1 alive
 *   2 moved    rank 4, epoch 8, step 8
 *   3 parcel   from rank 4, to rank 4, epoch 8, step 8, n 4,
 *              n times: position 4, sample 8, length 8 (-1: damaged); then the bytes of all
 *   4 bye      this node is done, and says nothing more
 *   5 lost     length 4, text: why this node gives the job up
 *   6 fetch    ticket 8, rank 4, sample 8, tier 4: what a rank of the other keeps
 *   7 kept     ticket 8, length 8 (-1: it is not there); then its bytes
 * </pre>
 */
final class PeerLink implements Line {

  private static final byte ALIVE = 1;
  private static final byte MOVED = 2;
  private static final byte PARCEL = 3;
  private static final byte BYE = 4;
  private static final byte LOST = 5;
  private static final byte FETCH = 6;
  private static final byte KEPT = 7;

  private static final int HEAD = 32; // of the longest, less what is repeated
  private static final long MISSING = -1;

  private static final int MOST_TEXT = 4096;

  /** Answers that may be due to a peer at once: it asks with some threads a rank. */
  private static final int MOST_ASKED = 1 << 14;

  private static final long LAST_WORDS_MILLIS = 1000;

  /** Something to say. */
  private sealed interface Saying {
    record Moved(int rank, PostOffice.Place place) implements Saying {}

    record Sent(Parcel parcel) implements Saying {}

    record Fetch(long ticket, Wanted wanted) implements Saying {}

    record Kept(long ticket, @Nullable MemorySegment bytes) implements Saying {}

    record Bye() implements Saying {}

    record Lost(String why) implements Saying {}
  }

  /** A sample that the peer wants. */
  private record Asked(long ticket, int rank, long sample, int tier) {}

  private final PeerChannel channel;
  private final PeerListener listener;
  private final BlockingQueue<Saying> sayings = new LinkedBlockingQueue<>();
  private final Thread writer;
  private final Thread reader;
  private final Thread answerer; // which may have to wait for a disk, as none of the others does
  private final Map<Long, Wanted> wanted = new ConcurrentHashMap<>(); // by ticket
  private final AtomicLong tickets = new AtomicLong();
  private final AtomicInteger due = new AtomicInteger(); // answers to the peer
  private final BlockingQueue<Asked> asked = new LinkedBlockingQueue<>();
  private final Semaphore answered = new Semaphore(1); // the answer before is written
  private volatile boolean isOver; // nothing more is written, or read

  PeerLink(SocketChannel channel, String name, PeerListener listener) {
    this.channel = new PeerChannel(channel);
    this.listener = listener;
    this.writer = Thread.ofPlatform().name("gristway-to-" + name).daemon().unstarted(this::write);
    this.reader = Thread.ofPlatform().name("gristway-from-" + name).daemon().unstarted(this::read);
    this.answerer =
        Thread.ofPlatform().name("gristway-kept-for-" + name).daemon().unstarted(this::answer);
  }

  @Override
  public void start() {
    channel.heardNow();
    writer.start();
    reader.start();
  }

  @Override
  public long heard() {
    return channel.heard();
  }

  @Override
  public void moved(int rank, PostOffice.Place place) {
    sayings.add(new Saying.Moved(rank, place));
  }

  @Override
  public void send(Parcel parcel) {
    sayings.add(new Saying.Sent(parcel));
  }

  @Override
  public void ask(Wanted sample) {
    long ticket = tickets.incrementAndGet();
    wanted.put(ticket, sample);
    sayings.add(new Saying.Fetch(ticket, sample));
    if (isOver) {
      sample.giveUp(); // whoever gave up all that were wanted may have missed it
    }
  }

  @Override
  public void bye() {
    sayings.add(new Saying.Bye());
  }

  @Override
  public void lost(String why) {
    sayings.add(new Saying.Lost(why));
  }

  /**
   * Ends the connection once all is written that was to be said, and the peer has ended it too; or
   * the time is up. Closed before the peer has read all, it might never get to know the last of it.
   */
  void close(long patienceMillis) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(patienceMillis);
    if (isElsewhere(writer) && isElsewhere(reader)) {
      writer.join(patienceMillis);
      reader.join(Math.max(1, (deadline - System.nanoTime()) / 1_000_000));
    }
    abort();
    join();
  }

  /** Waits for its threads, which use memory that others give back, unless this is one of them. */
  void join() {
    Workers.join(Stream.of(writer, reader, answerer).filter(PeerLink::isElsewhere).toList());
  }

  private static boolean isElsewhere(Thread thread) {
    return !thread.equals(Thread.currentThread());
  }

  @Override
  public void stopHearing() {
    channel.stopHearing();
  }

  @Override
  public void abort() {
    channel.close();
    writer.interrupt();
  }

  private void write() {
    try {
      while (true) {
        @Nullable Saying saying = sayings.poll(Peers.SIGN_NANOS, TimeUnit.NANOSECONDS);
        write(saying);
        channel.flush();
        switch (saying) {
          case Saying.Sent(Parcel parcel) -> listener.sent(parcel);
          case Saying.Kept _ -> {
            due.decrementAndGet();
            answered.release();
          }
          case Saying.Bye _, Saying.Lost _ -> {
            return;
          }
          case null, default -> {}
        }
      }
    } catch (IOException | RuntimeException failed) {
      awaitLastWords();
      listener.broken(failed);
    } catch (InterruptedException closed) {
      // What is left to be said, nobody hears.
    } finally {
      endFetching();
    }
  }

  /** Lets all be heard that the peer has said before it was gone: perhaps why. */
  private void awaitLastWords() {
    try {
      reader.join(LAST_WORDS_MILLIS);
    } catch (InterruptedException closed) {
      Thread.currentThread().interrupt();
    }
  }

  private void write(@Nullable Saying saying) throws IOException {
    ByteBuffer out = channel.out(HEAD);
    switch (saying) {
      case null -> out.put(ALIVE);
      case Saying.Moved(int rank, PostOffice.Place place) ->
          out.put(MOVED).putInt(rank).putLong(place.epoch()).putLong(place.step());
      case Saying.Sent(Parcel parcel) -> write(parcel, out.put(PARCEL));
      case Saying.Fetch(long ticket, Wanted sample) -> {
        out.put(FETCH).putLong(ticket);
        out.putInt(sample.rank()).putLong(sample.sample()).putInt(sample.tier());
      }
      case Saying.Kept(long ticket, MemorySegment bytes) -> {
        out.put(KEPT).putLong(ticket).putLong(bytes == null ? MISSING : bytes.byteSize());
        if (bytes != null) {
          channel.write(bytes);
        }
      }
      case Saying.Bye _ -> out.put(BYE);
      case Saying.Lost(String why) -> {
        byte[] text = why.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(text.length, MOST_TEXT);
        channel.out(HEAD + length).put(LOST).putInt(length).put(text, 0, length);
      }
    }
  }

  private void write(Parcel parcel, ByteBuffer out) throws IOException {
    out.putInt(parcel.from()).putInt(parcel.to());
    out.putLong(parcel.epoch()).putLong(parcel.step()).putInt(parcel.count());
    for (int i = 0; i < parcel.count(); i++) {
      channel.out(20).putInt(parcel.position(i));
      out.putLong(parcel.sample(i)).putLong(parcel.length(i));
    }
    channel.write(parcel.data().asSlice(0, parcel.bytes()));
  }

  /** Looks for what the peer wants, one sample after the other. */
  private void answer() {
    MemorySegment memory = MemorySegment.NULL;
    try {
      while (true) {
        Asked next = asked.take();
        answered.acquire();
        long length = listener.length(next.sample());
        if (memory.byteSize() < length) {
          memory = Arena.ofAuto().allocate(Math.max(length, 2 * memory.byteSize()));
        }
        MemorySegment bytes = memory.asSlice(0, length);
        boolean isHere = listener.copyKept(next.rank(), next.sample(), next.tier(), bytes);
        sayings.add(new Saying.Kept(next.ticket(), isHere ? bytes : null));
      }
    } catch (RuntimeException failed) {
      listener.broken(failed);
    } catch (InterruptedException over) {
      // Nothing is asked any more.
    }
  }

  private void read() {
    try {
      while (true) {
        byte kind = channel.in(1).get();
        switch (kind) {
          case ALIVE -> {}
          case MOVED -> {
            ByteBuffer in = channel.in(20);
            int rank = in.getInt();
            listener.moved(rank, new PostOffice.Place(in.getLong(), in.getLong()));
          }
          case PARCEL -> listener.arrived(readParcel());
          case FETCH -> readFetch();
          case KEPT -> readKept();
          case BYE -> {
            listener.left();
            return;
          }
          case LOST -> {
            listener.lost(readText());
            return;
          }
          default -> throw new IOException("it says something of kind " + kind);
        }
      }
    } catch (IOException | RuntimeException failed) {
      listener.broken(failed);
    } finally {
      endFetching();
      answerer.interrupt();
    }
  }

  private void endFetching() {
    isOver = true;
    wanted.values().forEach(Wanted::giveUp);
  }

  private void readFetch() throws IOException {
    ByteBuffer in = channel.in(24);
    long ticket = in.getLong();
    int rank = in.getInt();
    long sample = in.getLong();
    int tier = in.getInt();
    listener.checkFetch(rank, sample, tier);
    if (due.incrementAndGet() > MOST_ASKED) {
      throw new IOException("it wants more than " + MOST_ASKED + " samples at once");
    }
    asked.add(new Asked(ticket, rank, sample, tier));
    if (answerer.getState() == Thread.State.NEW) {
      answerer.start(); // most links are never asked anything
    }
  }

  private void readKept() throws IOException {
    ByteBuffer in = channel.in(16);
    long ticket = in.getLong();
    long length = in.getLong();
    Wanted sample = wanted.remove(ticket);
    if (sample == null) {
      throw new IOException("it answers what it was not asked");
    }
    if (length == MISSING) {
      sample.giveUp();
    } else if (length != sample.target().byteSize()) {
      sample.giveUp();
      throw new IOException("it has " + length + " bytes of sample " + sample.sample());
    } else if (sample.begin()) {
      boolean isHere = false;
      try {
        channel.read(sample.target());
        isHere = true;
      } finally {
        sample.end(isHere);
      }
    } else {
      channel.skip(length);
    }
  }

  private Parcel readParcel() throws IOException {
    ByteBuffer in = channel.in(28);
    int from = in.getInt();
    int to = in.getInt();
    Parcel parcel = listener.parcel(from, to, in.getLong(), in.getLong());
    int count = in.getInt();
    if (count < 0) {
      throw new IOException("it pushes " + count + " samples at once");
    }
    int before = -1;
    for (int i = 0; i < count; i++) {
      channel.in(20);
      int position = in.getInt();
      long sample = in.getLong();
      long length = in.getLong();
      if (position <= before) {
        throw new IOException("it pushes a sample for place " + position + " after " + before);
      }
      before = position;
      listener.check(position, sample, length);
      parcel.add(position, sample, length);
    }
    channel.read(parcel.data().asSlice(0, parcel.bytes()));
    return parcel;
  }

  private String readText() throws IOException {
    int length = channel.in(4).getInt();
    if (length < 0 || length > MOST_TEXT) {
      throw new IOException("it says something of " + length + " bytes");
    }
    byte[] text = new byte[length];
    channel.read(MemorySegment.ofArray(text));
    // It becomes part of an error, which is one line.
    return new String(text, StandardCharsets.UTF_8).replaceAll("\\p{Cntrl}", " ");
  }
}
