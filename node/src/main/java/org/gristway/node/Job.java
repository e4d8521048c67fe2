package org.gristway.node;

import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.peer.JobSecret;
import org.gristway.peer.MeetingPoint;
import org.gristway.peer.Mesh;
import org.gristway.plan.World;
import org.gristway.read.PeerCaches;
import org.gristway.read.PostOffice;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * What a node has to do with the others of its job. Where they meet, it looks for them from the
 * beginning, and nobody is given anything before all are there and about to do the same; when one
 * is lost, nobody is given anything more. Any thread may call.
 */
final class Job implements AutoCloseable {

  /** For all nodes to come: launchers start them at once, and some machines are slow to begin. */
  private static final long PATIENCE_SECONDS = 120;

  /** Between two looks whether who waits is still there. */
  private static final long CHECK_SECONDS = 1;

  private static final String SECRET = "GRISTWAY_JOB_SECRET";

  private final @Nullable Mesh mesh;
  private final @Nullable Thread joining;
  private final CompletableFuture<PostOffice> office = new CompletableFuture<>();
  private volatile @Nullable Failure lost;

  /**
   * Begins to look for the other nodes, if there are any to meet.
   *
   * @param here what ranks of this node keep, for the others
   * @param notices told a line for each stranger, and if nodes miss each other
   */
  Job(Settings settings, Snapshot snapshot, PeerCaches here, Consumer<String> notices) {
    MeetingPoint point = settings.meetingPoint();
    World world = settings.nodes();
    int window = settings.exchange().window();
    if (world.nodes() == 1 || point == null) {
      if (world.nodes() > 1 && settings.exchange().share() > 0) {
        throw Failure.wrongCall(
            "ranks of %d nodes are to mix what they read, and these do not know each other: give all"
                + " of them the same secret in %s",
            world.nodes(), SECRET);
      }
      if (world.nodes() > 1 && settings.fetches()) {
        notices.accept(
            String.format(
                "nodes cannot fetch from each other what '%s' has them keep, and read it from the"
                    + " storage: set %s on all machines",
                settings.policy(), SECRET));
      }
      this.mesh = null;
      this.joining = null;
      office.complete(PostOffice.alone(world.ranks(), window));
      return;
    }
    String secret = System.getenv(SECRET);
    if (secret == null) {
      throw Failure.wrongCall(
          "the nodes of a job know each other by a secret: set %s where the node is started",
          SECRET);
    }
    Mesh.Listener listener =
        new Mesh.Listener() {
          @Override
          public void lost(Failure why) {
            lost = why;
          }

          @Override
          public void refused(String line) {
            notices.accept(line);
          }
        };
    this.mesh =
        new Mesh(
            world,
            snapshot,
            settings.batchSize(),
            window,
            new InetSocketAddress(settings.listensAt(), 0),
            JobSecret.of(secret),
            settings.intent(snapshot),
            here,
            listener);
    Mesh open = mesh;
    this.joining =
        Thread.ofPlatform()
            .name("gristway-join")
            .daemon()
            .start(() -> join(open, point, settings.job()));
  }

  private void join(Mesh open, MeetingPoint point, String job) {
    try {
      open.meet(point, job, PATIENCE_SECONDS);
      office.complete(open.office());
    } catch (Throwable refused) {
      office.completeExceptionally(refused); // it is told to whoever waits
    }
  }

  /** True if nodes depend on each other. */
  boolean isShared() {
    return mesh != null;
  }

  /** What ranks push samples by, once all nodes are there; for a client that waits for them. */
  PostOffice office(RankFeed.Client client) throws InterruptedException {
    try {
      while (true) {
        try {
          return office.get(CHECK_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException notYet) {
          client.check();
        }
      }
    } catch (ExecutionException refused) {
      switch (refused.getCause()) {
        case Failure failure -> throw failure;
        case null, default -> throw new IllegalStateException(refused.getCause());
      }
    }
  }

  /** What ranks of other nodes keep. Nothing, where nodes do not know each other. */
  PeerCaches caches() {
    return mesh == null ? PeerCaches.NONE : mesh.caches();
  }

  /** Tells the other ranks that one of this node has ended: none of them is to wait for it. */
  void leave(int rank) {
    if (office.isDone() && !office.isCompletedExceptionally()) {
      office.join().leave(rank);
    }
  }

  /** Refuses to go on without a node that is lost. */
  void refuseLost() {
    Failure why = lost;
    if (why != null) {
      throw why;
    }
  }

  /** Leaves the job. No rank may push or wait any more. */
  @Override
  public void close() {
    boolean isAlone = mesh == null;
    if (isAlone) {
      office.join().close();
    }
    office.completeExceptionally(Failure.environment("the node ends"));
    if (joining != null) {
      joining.interrupt();
    }
    if (mesh != null) {
      mesh.close();
    }
  }
}
