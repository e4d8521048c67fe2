package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import org.gristway.read.Parcel;
import org.gristway.read.PostOffice;

/**
 * The connections between the nodes of a simulated job. What one node says to another arrives in
 * its order and some time later, as over TCP; between pairs there is no order. Where a pair is cut
 * off from each other, all waits until they are not.
 */
final class VirtualNetwork {

  /** Sees every parcel that arrives, before its node does. */
  interface Inspector {
    void arrives(Parcel parcel);
  }

  /** Something that a node says, when the other hears it. */
  private interface Saying {
    void heard(End by) throws IOException;
  }

  private static final long FOR_GOOD = Long.MAX_VALUE;

  private final Timeline time;
  private final long delayNanos; // on average
  private final Inspector inspector;
  private final PostOffice.Place[] told; // by rank: how far it has said that it has come
  private final End[][] ends; // by the node whose end it is, and the other
  private final long[][] cutUntil; // by who says and who hears
  private boolean isOver;

  VirtualNetwork(Timeline time, int nodes, int ranks, long delayNanos, Inspector inspector) {
    this.time = time;
    this.delayNanos = delayNanos;
    this.inspector = inspector;
    this.told = new PostOffice.Place[ranks];
    this.ends = new End[nodes][nodes];
    this.cutUntil = new long[nodes][nodes];
  }

  /** Connects every pair. */
  void connect(Peers[] nodes) {
    for (int own = 0; own < nodes.length; own++) {
      for (int other = 0; other < nodes.length; other++) {
        if (own != other) {
          ends[own][other] = new End(own, other, nodes[own].listener(other));
        }
      }
    }
    for (int own = 0; own < nodes.length; own++) {
      for (int other = 0; other < nodes.length; other++) {
        if (own != other) {
          assertThat(nodes[own].connect(other, ends[own][other])).isTrue();
        }
      }
    }
  }

  /** How far a rank has told others that it has come. */
  PostOffice.Place told(int rank) {
    return told[rank];
  }

  /** Cuts two nodes off from each other for a time. */
  void cut(int one, int other, long nanos) {
    cutUntil[one][other] = time.now() + nanos;
    cutUntil[other][one] = time.now() + nanos;
  }

  void cutForGood(int one, int other) {
    cutUntil[one][other] = FOR_GOOD;
    cutUntil[other][one] = FOR_GOOD;
  }

  /** Breaks the connections of a node that is gone, each after what it has said before. */
  void breakOff(int node) {
    for (int other = 0; other < ends.length; other++) {
      if (other != node) {
        breakOff(node, other);
      }
    }
  }

  /** Has a node find its connection to another broken, after what that has said before. */
  void breakOff(int node, int other) {
    ends[node][other].breakOff();
  }

  /** Drops all that is under way. */
  void end() {
    isOver = true;
  }

  /** A node's end of a connection. */
  final class End implements Line {

    private final int own;
    private final int other;
    private final PeerListener listener;
    private long heard;
    private long written; // when the last of what was said is written, at the earliest
    private long said; // when something was last written
    private final ArrayDeque<Saying> underWay = new ArrayDeque<>();
    private boolean saysNoMore;
    private boolean hearsNoMore;
    private boolean isClosed;

    End(int own, int other, PeerListener listener) {
      this.own = own;
      this.other = other;
      this.listener = listener;
    }

    @Override
    public void start() {
      heard = time.now();
      said = time.now();
      time.upkeepAt(said + Peers.SIGN_NANOS, own, this::sign);
    }

    /** Says that this node is alive if it has said nothing else for a while. */
    private void sign() {
      if (saysNoMore || isClosed || isOver) {
        return;
      }
      if (time.now() - said >= Peers.SIGN_NANOS) {
        said = time.now();
        transmit(by -> {}, false);
      }
      time.upkeepAt(said + Peers.SIGN_NANOS, own, this::sign);
    }

    @Override
    public long heard() {
      return heard;
    }

    @Override
    public void moved(int rank, PostOffice.Place place) {
      told[rank] = place;
      say(() -> transmit(by -> by.listener.moved(rank, place), true));
      time.mayGiveWay();
    }

    @Override
    public void send(Parcel parcel) {
      say(() -> write(parcel));
      time.mayGiveWay();
    }

    @Override
    public void ask(Wanted sample) {
      sample.giveUp(); // nothing is kept in these jobs
    }

    @Override
    public void bye() {
      say(() -> last(by -> by.listener.left()));
    }

    @Override
    public void lost(String why) {
      say(() -> last(by -> by.listener.lost(why)));
    }

    @Override
    public void stopHearing() {
      hearsNoMore = true;
    }

    @Override
    public void abort() {
      if (!isClosed) {
        isClosed = true;
        breakOff();
      }
    }

    private void breakOff() {
      transmit(by -> by.breaks(new EOFException("it has closed the connection")), true);
    }

    /** Has something written after all that was said before. */
    private void say(Runnable write) {
      written = Math.max(written, time.now() + time.about(delayNanos / 10));
      time.at(
          written,
          own,
          () -> {
            if (!saysNoMore && !isClosed && !isOver) {
              said = time.now();
              write.run();
            }
          });
    }

    private void last(Saying saying) {
      saysNoMore = true;
      transmit(
          by -> {
            by.hearsNoMore = true;
            saying.heard(by);
          },
          true);
    }

    private void write(Parcel parcel) {
      int from = parcel.from();
      int to = parcel.to();
      long epoch = parcel.epoch();
      long step = parcel.step();
      int count = parcel.count();
      int[] positions = new int[count];
      long[] samples = new long[count];
      long[] lengths = new long[count];
      for (int i = 0; i < count; i++) {
        positions[i] = parcel.position(i);
        samples[i] = parcel.sample(i);
        lengths[i] = parcel.length(i);
      }
      byte[] bytes = parcel.data().asSlice(0, parcel.bytes()).toArray(ValueLayout.JAVA_BYTE);
      listener.sent(parcel);
      transmit(
          by -> {
            Parcel copy = by.listener.parcel(from, to, epoch, step);
            for (int i = 0; i < count; i++) {
              by.listener.check(positions[i], samples[i], lengths[i]);
              copy.add(positions[i], samples[i], lengths[i]);
            }
            MemorySegment.copy(bytes, 0, copy.data(), ValueLayout.JAVA_BYTE, 0, bytes.length);
            inspector.arrives(copy);
            by.listener.arrived(copy);
          },
          true);
    }

    /** Has the other node hear something, some time later. */
    private void transmit(Saying saying, boolean isWork) {
      underWay.add(saying);
      arriveAt(time.now() + time.about(delayNanos), isWork);
    }

    private void arriveAt(long when, boolean isWork) {
      if (isWork) {
        time.at(when, other, () -> arrive(true));
      } else {
        time.upkeepAt(when, other, () -> arrive(false));
      }
    }

    /** Whichever arrives now is the one that was said first. */
    private void arrive(boolean isWork) {
      long until = cutUntil[own][other];
      if (until == FOR_GOOD || isOver) {
        return;
      }
      if (until > time.now()) {
        arriveAt(until, isWork);
      } else {
        ends[other][own].hear(underWay.remove());
      }
    }

    private void hear(Saying saying) {
      if (hearsNoMore || isClosed) {
        return;
      }
      heard = time.now();
      try {
        saying.heard(this);
      } catch (IOException | RuntimeException failed) {
        breaks(failed);
      }
    }

    private void breaks(Exception why) {
      hearsNoMore = true;
      listener.broken(why);
    }
  }
}
