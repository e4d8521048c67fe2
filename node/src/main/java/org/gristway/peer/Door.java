package org.gristway.peer;

import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A port of a node. Anybody may come, and each is heard in a thread of its own, so nobody waits for
 * a stranger. Only so many are heard at once: one more takes the place of the one that has been
 * there for longest without a proof. A node of the job proves at once that it is one, so strangers
 * take places from each other, and cost a few descriptors for a few seconds.
 */
final class Door implements AutoCloseable {

  private static final System.Logger LOG = System.getLogger(Door.class.getName());

  /** Who may be there without a proof at once. */
  private static final int MOST_UNPROVEN = 64;

  /** Whom the system keeps until they are heard. */
  private static final int BACKLOG = 256;

  /**
   * For a visitor to prove itself and to say what it wants. It is more than {@link #COMING_MILLIS}.
   * The visitor always gives up first: if it believes that it was let in, it was.
   */
  private static final long HEARING_MILLIS = 10_000;

  /** For a node that comes to another's door to be let in. */
  static final long COMING_MILLIS = 5000;

  private static final long PAUSE_MILLIS = 100;

  /** Hears visitors. It is called in any number of threads at once. */
  interface Porter {

    /**
     * Hears a visitor. If it returns, the connection is the porter's; else it is closed.
     *
     * @throws IOException if the visitor is not let in
     */
    void hear(Visit visit) throws IOException;

    /** Is told of somebody who was not let in. */
    void refused(String host, IOException why);
  }

  private final ServerSocketChannel server;
  private final Porter porter;
  private final Set<Visit> unproven = new LinkedHashSet<>(); // the longest first; its own lock

  /**
   * Begins to listen.
   *
   * @param at where; port 0 for any that is free
   */
  Door(InetSocketAddress at, Porter porter) throws IOException {
    this.porter = porter;
    server = ServerSocketChannel.open();
    try {
      server.bind(at, BACKLOG);
    } catch (IOException | RuntimeException refused) {
      server.close();
      throw refused;
    }
    Thread.ofPlatform().name("gristway-door").daemon().start(this::accept);
  }

  /** Where it is. */
  InetSocketAddress address() {
    try {
      return (InetSocketAddress) server.getLocalAddress();
    } catch (IOException closedAlready) {
      throw new UncheckedIOException(closedAlready);
    }
  }

  private void accept() {
    while (server.isOpen()) {
      try {
        Visit visit = new Visit(server.accept());
        synchronized (unproven) {
          unproven.add(visit);
        }
        sendAway(MOST_UNPROVEN);
        Thread.ofVirtual().name("gristway-visit").start(() -> hear(visit));
      } catch (IOException closedOrFull) {
        if (server.isOpen()) {
          LOG.log(System.Logger.Level.WARNING, "no node can connect: " + closedOrFull);
          sendAway(0); // they have the descriptors that are lacking
          pause();
        }
      }
    }
  }

  /** Sends those away who have been there without a proof for longest, until some are left. */
  private void sendAway(int left) {
    List<Visit> gone;
    synchronized (unproven) {
      gone = unproven.stream().limit(Math.max(0, unproven.size() - left)).toList();
      gone.forEach(unproven::remove);
    }
    gone.forEach(visit -> visit.limit.expire());
  }

  private static void pause() {
    try {
      TimeUnit.MILLISECONDS.sleep(PAUSE_MILLIS);
    } catch (InterruptedException now) {
      Thread.currentThread().interrupt();
    }
  }

  private void hear(Visit visit) {
    String from = visit.host();
    try {
      porter.hear(visit);
    } catch (IOException stranger) {
      close(visit.channel);
      if (server.isOpen()) {
        porter.refused(
            from,
            switch (stranger) {
              case IOException _ when visit.limit.isOver() -> new IOException("it takes too long");
              case EOFException _ -> new IOException("it breaks off");
              default -> stranger;
            });
      }
    } finally {
      visit.limit.close();
      visit.leave();
    }
  }

  /** Closes a connection that is of no use any more, if there is one. */
  static void close(@Nullable SocketChannel channel) {
    try {
      if (channel != null) {
        channel.close();
      }
    } catch (IOException ignored) {
      // It was of no use anyway.
    }
  }

  /** Hears nobody any more. Whoever was let in stays. */
  @Override
  public void close() {
    try {
      server.close();
    } catch (IOException ignored) {
      // It goes with the process.
    }
    sendAway(0);
  }

  /** Somebody who has come. */
  final class Visit {

    private final SocketChannel channel;
    private final TimeLimit limit;

    private Visit(SocketChannel channel) {
      this.channel = channel;
      this.limit = new TimeLimit(channel, HEARING_MILLIS);
    }

    SocketChannel channel() {
      return channel;
    }

    Socket socket() {
      return channel.socket();
    }

    private String host() {
      return channel.socket().getInetAddress() == null
          ? "somewhere"
          : channel.socket().getInetAddress().getHostAddress();
    }

    private void leave() {
      synchronized (unproven) {
        unproven.remove(this);
      }
    }

    /** Says that it has proven to be of the job: nobody takes its place any more. */
    void proven() {
      leave();
    }

    /**
     * Lets it in: it may take any time from now on.
     *
     * @throws IOException if its time was up before
     */
    void letIn() throws IOException {
      limit.lift();
    }
  }
}
