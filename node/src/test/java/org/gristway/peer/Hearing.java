package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.gristway.Failure;
import org.gristway.plan.Caching;
import org.gristway.plan.Exchange;
import org.gristway.plan.World;
import org.gristway.read.Parcel;
import org.gristway.read.PostOffice;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * Has node 0 of two, with two ranks each, hear bytes from the other, and holds it to what it must
 * do whatever they are.
 */
final class Hearing implements AutoCloseable {

  static final int BATCH = 6;
  private static final int WINDOW = 2;
  static final int ROOM = Exchange.room(WINDOW);

  /** Samples that node 0 waits for: those from 1, under the ticket of the same number. */
  static final int ASKED = 4;

  private static final int PAIRS = 4; // of one of their ranks and one of ours
  private static final long SOON_SECONDS = 20;

  /**
   * What came of it.
   *
   * @param understood messages
   * @param why the connection was ended, or null if the peer has done so in its own words
   */
  record Outcome(int understood, @Nullable IOException why) {}

  private final Snapshot snapshot;
  private final long longest;
  private final ServerSocketChannel server;
  private final UnixDomainSocketAddress address;

  Hearing(Snapshot snapshot, Path folder) throws IOException {
    this.snapshot = snapshot;
    this.longest =
        LongStream.range(0, snapshot.sampleCount()).map(snapshot::length).max().orElseThrow();
    this.address = UnixDomainSocketAddress.of(folder.resolve("socket"));
    this.server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(address);
  }

  @Override
  public void close() throws IOException {
    server.close();
  }

  /** Says it, closes, and checks what a node does about it. */
  Outcome hear(byte[] said) throws IOException, InterruptedException {
    List<Failure> losses = new ArrayList<>();
    Peers peers = new Peers(new World(4, 2, 0), snapshot, BATCH, WINDOW, this::keep, losses::add);
    Recorder recorder = new Recorder(peers.listener(1));
    try (SocketChannel peer = SocketChannel.open(address);
        SocketChannel channel = server.accept()) {
      PeerLink link = new PeerLink(channel, "test", recorder);
      peers.connect(1, link);
      List<Wanted> wanted = new ArrayList<>();
      for (int sample = 1; sample <= ASKED; sample++) {
        MemorySegment target = MemorySegment.ofArray(new byte[(int) snapshot.length(sample)]);
        wanted.add(new Wanted(2, sample, Caching.MEMORY, target));
        link.ask(wanted.getLast());
      }
      say(peer, said);
      assertThat(recorder.ended.await(SOON_SECONDS, TimeUnit.SECONDS)).as("no hang").isTrue();
      link.abort();
      link.join();
      for (Wanted each : wanted) {
        assertThat(each.begin()).as("nobody waits for it any more").isFalse();
        each.await(1);
      }
      recorder.check(peers.office());
      assertThat(losses).hasSize(recorder.hasLeft ? 0 : 1);
      for (Failure each : losses) {
        assertThat(each.getMessage()).doesNotContain("\n", "\r");
      }
      return new Outcome(recorder.understood, (IOException) recorder.why);
    } finally {
      peers.office().close();
    }
  }

  private static void say(SocketChannel peer, byte[] said) {
    ByteBuffer bytes = ByteBuffer.wrap(said);
    try {
      while (bytes.hasRemaining()) {
        peer.write(bytes);
      }
      peer.shutdownOutput();
    } catch (IOException closed) {
      // It has heard enough.
    }
  }

  private boolean keep(int rank, long sample, int tier, MemorySegment target) {
    assertThat(target.byteSize()).isEqualTo(snapshot.length(sample));
    assertThat(rank).isBetween(0, 1);
    return sample % 2 == 0;
  }

  /** Passes on what a link says, and notes it. */
  private final class Recorder implements PeerListener {

    private final PeerListener listener;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final List<Parcel> parcels = new ArrayList<>();
    private int understood;
    private boolean hasLeft;
    private @Nullable Exception why;

    Recorder(PeerListener listener) {
      this.listener = listener;
    }

    void check(PostOffice office) {
      if (why != null) {
        assertThat(why).isInstanceOf(IOException.class);
      }
      long most = BATCH * longest;
      assertThat(office.mostWaitingBytes()).isLessThanOrEqualTo(PAIRS * ROOM * most);
      for (Parcel each : parcels) {
        assertThat(each.bytes()).isLessThanOrEqualTo(most);
        assertThat(each.data().byteSize()).isLessThanOrEqualTo(Math.max(1 << 16, 2 * most));
      }
    }

    @Override
    public void moved(int rank, PostOffice.Place place) throws IOException {
      listener.moved(rank, place);
      understood++;
    }

    @Override
    public Parcel parcel(int from, int to, long epoch, long step) throws IOException {
      Parcel parcel = listener.parcel(from, to, epoch, step);
      if (parcels.stream().noneMatch(each -> each == parcel)) {
        parcels.add(parcel);
      }
      assertThat(parcels).hasSizeLessThanOrEqualTo(PAIRS * ROOM + 1);
      return parcel;
    }

    @Override
    public void check(int position, long sample, long length) throws IOException {
      listener.check(position, sample, length);
    }

    @Override
    public void arrived(Parcel parcel) {
      for (int i = 0; i < parcel.count(); i++) {
        assertThat(parcel.position(i)).isBetween(i, BATCH - 1);
        assertThat(parcel.length(i)).isIn(Parcel.DAMAGED, snapshot.length(parcel.sample(i)));
      }
      listener.arrived(parcel);
      understood++;
    }

    @Override
    public void sent(Parcel parcel) {
      listener.sent(parcel);
    }

    @Override
    public void checkFetch(int rank, long sample, int tier) throws IOException {
      listener.checkFetch(rank, sample, tier);
      understood++;
    }

    @Override
    public long length(long sample) {
      return listener.length(sample);
    }

    @Override
    public boolean copyKept(int rank, long sample, int tier, MemorySegment target) {
      return listener.copyKept(rank, sample, tier, target);
    }

    @Override
    public void left() {
      hasLeft = true;
      listener.left();
      ended.countDown();
    }

    @Override
    public void lost(String text) {
      listener.lost(text);
      ended.countDown();
    }

    @Override
    public void broken(Exception failed) {
      if (ended.getCount() > 0) {
        why = failed;
      }
      listener.broken(failed);
      ended.countDown();
    }
  }
}
