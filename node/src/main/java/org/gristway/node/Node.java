package org.gristway.node;

import java.io.EOFException;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import jdk.net.ExtendedSocketOptions;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * Reads for the trainers of a machine. It listens at a Unix socket, which only its own user may
 * connect to; the first client says what is read, and those after it must want the same. When the
 * last one is gone, all memory is given back: a node that was started for a job ends then, a named
 * one waits for the next job.
 */
public final class Node implements AutoCloseable {

  /** For the first client to come: whoever has started the node may be gone. */
  private static final long FIRST_CLIENT_SECONDS = 30;

  /** And if that is known to be gone: another may have waited for the same node. */
  private static final long OTHER_CLIENT_SECONDS = 2;

  /** Between two attempts to take up clients. */
  private static final long REFUSED_NANOS = 50_000_000;

  /** Between two looks at the socket's file. */
  private static final long WATCH_NANOS = 500_000_000;

  /** For a job to leave before the next is told that the node is in use. */
  private static final long LEAVING_MILLIS = 2000;

  private final Path socket;
  private final String version;
  private final boolean isNamed;
  private final String user;
  // With a lock of its own: whoever connects is let in also while a dataset is being opened.
  private final Set<Connection> clients = new HashSet<>();
  private final Set<Connection> users = new HashSet<>(); // of the feeds
  private final Queue<String> notices = new ConcurrentLinkedQueue<>();
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile ServerSocketChannel server;
  private Path listening; // the socket's file, under the lock of `clients`
  private @Nullable Feeds feeds;
  private boolean hadClient;

  /** A node that goes on after its last client is gone; what one before it has left is removed. */
  public static Node named(Path socket, String version) {
    try (SocketChannel _ = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
      throw Failure.environment("another node has this name already: it listens at %s", socket);
    } catch (IOException nobody) {
      try {
        Files.deleteIfExists(socket);
      } catch (IOException failed) {
        throw Failure.io("remove " + socket, failed);
      }
    }
    return new Node(socket, version, true);
  }

  /** A node for a job. It begins to listen at once. */
  static Node forJob(Path socket, String version) {
    return new Node(socket, version, false);
  }

  private Node(Path socket, String version, boolean isNamed) {
    this.socket = socket;
    this.version = version;
    this.isNamed = isNamed;
    try {
      // As the system has it: the JVM's own notion is a question mark for a user without a name.
      user = Files.getOwner(Path.of("/proc/self")).getName();
      server = listenAt(socket);
      listening = socket;
    } catch (IOException failed) {
      throw Failure.io("listen at " + socket, failed);
    }
  }

  private static ServerSocketChannel listenAt(Path socket) throws IOException {
    ServerSocketChannel channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    try {
      return channel.bind(UnixDomainSocketAddress.of(socket));
    } catch (IOException | RuntimeException refused) {
      channel.close();
      throw refused;
    }
  }

  /**
   * Looks now and then whether the socket's file is there, and listens anew if it is not: folders
   * for such files are removed at a user's last logout, and by those who tidy up.
   */
  private void watchSocket() {
    while (server.isOpen()) {
      LockSupport.parkNanos(WATCH_NANOS);
      synchronized (clients) {
        if (ended.getCount() > 0 && !Files.exists(listening, LinkOption.NOFOLLOW_LINKS)) {
          listenAnew();
        }
      }
    }
  }

  private void listenAnew() {
    try {
      Path folder = RuntimeFolder.restored(Objects.requireNonNull(socket.getParent()));
      Path place = folder.resolve(Objects.requireNonNull(socket.getFileName()));
      ServerSocketChannel before = server;
      server = listenAt(place);
      listening = place;
      before.close(); // which ends the wait for those who cannot come any more
    } catch (IOException | RuntimeException refused) {
      // It is tried again. Clients that are here stay, and others say what is missing.
      System.getLogger(Node.class.getName())
          .log(System.Logger.Level.DEBUG, "cannot listen anew", refused);
    }
  }

  String version() {
    return version;
  }

  /** Serves until the last client is gone, or it is closed. */
  public void serve() throws InterruptedException {
    serve(true);
  }

  /**
   * Serves as long.
   *
   * @param isAwaited false if whoever has started it is known to be gone
   */
  void serve(boolean isAwaited) throws InterruptedException {
    long patience = isAwaited ? FIRST_CLIENT_SECONDS : OTHER_CLIENT_SECONDS;
    Thread.ofPlatform().name("gristway-accept").daemon().start(this::accept);
    Thread.ofPlatform().name("gristway-watch").daemon().start(this::watchSocket);
    if (!isNamed && !ended.await(patience, TimeUnit.SECONDS)) {
      synchronized (clients) {
        if (!hadClient) {
          return;
        }
      }
    }
    ended.await();
  }

  private void accept() {
    while (server.isOpen()) {
      try {
        take(server.accept());
      } catch (IOException refused) {
        // Closed; or there is no descriptor left, and those who have some give them back.
        LockSupport.parkNanos(REFUSED_NANOS);
      }
    }
    ended.countDown();
  }

  private void take(SocketChannel channel) throws IOException {
    Connection client = new Connection(this, channel);
    boolean isServed = false;
    try {
      isServed = isOwn(channel) && enter(client);
      if (isServed) {
        Thread.ofPlatform().name("gristway-client").daemon().start(() -> serve(client, channel));
      }
    } finally {
      if (!isServed) {
        channel.close();
      }
    }
  }

  /** The folder keeps others out; should its mode have been changed, this does. */
  private boolean isOwn(SocketChannel channel) throws IOException {
    return channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user().getName().equals(user);
  }

  private boolean enter(Connection client) {
    synchronized (clients) {
      hadClient = true;
      return ended.getCount() > 0 && clients.add(client);
    }
  }

  private void serve(Connection client, SocketChannel channel) {
    try (channel) {
      client.serve();
    } catch (EOFException gone) {
      // As clients go.
    } catch (IOException | InterruptedException | RuntimeException broken) {
      System.getLogger(Node.class.getName())
          .log(System.Logger.Level.DEBUG, "a client is given up", broken);
    } finally {
      leave(client);
    }
  }

  private void leave(Connection client) {
    Feeds unused = null;
    synchronized (clients) {
      clients.remove(client);
    }
    synchronized (this) {
      if (users.remove(client) && users.isEmpty()) {
        unused = feeds;
        feeds = null;
      }
    }
    boolean isAwaited = unused != null && unused.job().isShared();
    if (!isAwaited) {
      // Before anything that may wait for storage: nobody is left for whom a node would stay.
      endIfUnused();
    }
    client.close();
    if (unused != null) {
      unused.close();
    }
    endIfUnused(); // others of the job have been told by now
    synchronized (this) {
      notifyAll(); // its memory is free now, for whoever wants something else
    }
  }

  private void endIfUnused() {
    synchronized (clients) {
      if (clients.isEmpty() && !isNamed) {
        ended.countDown();
      }
    }
  }

  /** What a client wants to be given; others that want something else may be about to leave. */
  synchronized Feeds feeds(Connection client, Settings settings, int version, String snapshotId)
      throws InterruptedException {
    long deadline = System.nanoTime() + LEAVING_MILLIS * 1_000_000;
    Feeds known = feeds;
    while (known != null && !known.settings().isSame(settings) && System.nanoTime() < deadline) {
      wait(LEAVING_MILLIS / 100);
      known = feeds;
    }
    if (known == null) {
      known = new Feeds(settings, version, snapshotId, notices::add);
      feeds = known;
    } else {
      known.settings().checkSame(settings);
      known.checkSame(version, snapshotId);
    }
    users.add(client);
    return known;
  }

  /** Closes it when it has no client; until then clients are served on. */
  void endWhenUnused() {
    boolean isUnused;
    synchronized (clients) {
      isUnused = clients.isEmpty();
    }
    try {
      if (!isUnused) {
        ended.await();
      }
    } catch (InterruptedException enough) {
      Thread.currentThread().interrupt();
    }
    close();
  }

  boolean hasEnded() {
    return ended.getCount() == 0;
  }

  /** A line that a client is to be told, and has not been; null if there is none. */
  @Nullable String notice() {
    return notices.poll();
  }

  /** Stops listening and gives everything back. */
  @Override
  public void close() {
    ended.countDown();
    synchronized (clients) {
      try {
        Files.deleteIfExists(listening); // first, or it may be that of the node after this one
        server.close();
      } catch (IOException ignored) {
        // The next node that wants the name removes what is left.
      }
    }
    Feeds open;
    synchronized (this) {
      open = feeds;
      feeds = null;
      ended.countDown();
    }
    if (open != null) {
      open.close();
    }
  }
}
