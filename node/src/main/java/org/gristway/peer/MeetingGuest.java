package org.gristway.peer;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/** The end of a {@link Meeting} that a node has which is not node 0. */
final class MeetingGuest implements Meeting {

  private static final long AGAIN_MILLIS = 200;
  private static final int REACH_MILLIS = 2000;

  /** For a job with another secret, which was there before, to be gone. */
  private static final long REFUSED_MILLIS = 3000;

  private final Card own;
  private final int node;
  private final MeetingPoint point;
  private final MutualProof proof;
  private List<Integer> missing = List.of(0);
  private @Nullable String trouble; // why it is not with the host now

  MeetingGuest(Card own, int node, MeetingPoint point, MutualProof proof) {
    this.own = own;
    this.node = node;
    this.point = point;
    this.proof = proof;
  }

  @Override
  public List<InetSocketAddress> gather(long patienceSeconds) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(patienceSeconds);
    long refusedAt = 0;
    InetSocketAddress refusedBy = null;
    while (System.nanoTime() < deadline) {
      InetSocketAddress host = host();
      try {
        if (host != null) {
          return ask(host, deadline);
        }
      } catch (MutualProof.OtherSecret refused) {
        if (!host.equals(refusedBy)) {
          refusedBy = host;
          refusedAt = System.nanoTime();
        } else if (System.nanoTime() - refusedAt > TimeUnit.MILLISECONDS.toNanos(REFUSED_MILLIS)) {
          throw Failure.wrongCall(
              "node 0 at %s has another secret than node %d: set the same GRISTWAY_JOB_SECRET on all"
                  + " machines; if another job meets there, set GRISTWAY_PORT",
              Mesh.text(host), node);
        }
      } catch (IOException notYet) {
        refusedBy = null;
        trouble = Failure.reason(notYet);
      }
      TimeUnit.MILLISECONDS.sleep(AGAIN_MILLIS);
    }
    throw Failure.environment(
        "%s of this job did not come within %d s: are they started, with the same secret, and is"
            + " node 0 reached %s?%s",
        Meeting.names(missing),
        patienceSeconds,
        switch (point) {
          case MeetingPoint.Host known -> "at " + Mesh.text(known.address());
          case MeetingPoint.Folder folder -> "where it tells in " + folder.folder();
        },
        trouble == null ? "" : " When it was last tried: " + trouble);
  }

  /** Where the host is, if that is known. */
  private @Nullable InetSocketAddress host() {
    return switch (point) {
      case MeetingPoint.Host known -> known.address();
      case MeetingPoint.Folder folder -> folder.look(own.job());
    };
  }

  private List<InetSocketAddress> ask(InetSocketAddress host, long deadline) throws IOException {
    missing = List.of(0);
    try (SocketChannel channel = SocketChannel.open()) {
      Socket socket = channel.socket();
      try (TimeLimit limit = new TimeLimit(channel, REACH_MILLIS + Door.COMING_MILLIS)) {
        socket.connect(Mesh.resolved(host), REACH_MILLIS);
        if (channel.getLocalAddress().equals(channel.getRemoteAddress())) {
          throw new IOException("nobody listens there"); // but this socket itself, by chance
        }
        proof.connect(socket, 0);
        MutualProof.write(socket, own.text());
        limit.lift();
      }
      trouble = null;
      while (true) {
        socket.setSoTimeout((int) Math.max(1, (deadline - System.nanoTime()) / 1_000_000));
        String[] lines = MutualProof.read(socket, Meeting.mostBytes(own.nodes())).split("\n", -1);
        List<String> rest = Arrays.asList(lines).subList(1, lines.length);
        switch (lines[0]) {
          case MISSING -> missing = rest.stream().map(Integer::valueOf).toList();
          case ALL -> {
            return rest.stream().map(Meeting::address).toList();
          }
          case WRONG -> throw Failure.wrongCall("%s", String.join(" ", rest));
          case LATE -> throw Failure.environment("%s", String.join(" ", rest));
          case BUSY -> throw new IOException(String.join(" ", rest));
          default -> throw new IOException("node 0 says what this one does not understand");
        }
      }
    }
  }

  /** Does nothing: it is with the host for as long as it waits only. */
  @Override
  public void close() {}
}
