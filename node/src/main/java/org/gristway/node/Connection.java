package org.gristway.node;

import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.gristway.Failure;
import org.gristway.chunk.SampleEntry;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.handover.HandoverRoom;
import org.gristway.plan.World;
import org.gristway.read.AskedLoader;
import org.gristway.read.LoaderOptions;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * A client: a training process or one of its workers. Answers its requests in order. When it is
 * gone, everything that it had is given back, unless it has said that it still uses it: then that
 * memory is not built in again. For one thread.
 */
final class Connection implements RankFeed.Client, AutoCloseable {

  private static final int BUG = 70;

  private final Node node;
  private final SocketChannel channel;
  private final Map<Long, Runnable> lent = new HashMap<>(); // how to release it, by token
  private @Nullable Feeds feeds;
  private @Nullable RankFeed attached;
  private @Nullable AskedLoader exact;
  private long exactSerial;
  private int batches; // that it may have at once
  private long tokens;

  /** Gives a piece back. */
  private record LentPiece(RankFeed feed, RankFeed.Client client, Piece piece) implements Runnable {
    @Override
    public void run() {
      feed.release(client, piece);
    }
  }

  Connection(Node node, SocketChannel channel) {
    this.node = node;
    this.channel = channel;
  }

  /** Answers until the client is gone, and has been heard out. */
  void serve() throws IOException, InterruptedException {
    boolean isHeard = true;
    while (true) {
      Message reply;
      try {
        reply = answer(Message.read(channel));
      } catch (Failure failure) {
        if (node.hasEnded()) {
          return; // the client is to see that, and not what came of it
        }
        reply = failed(failure);
      } catch (NoRoom now) {
        reply = Message.of(Message.FULL).putRest(String.valueOf(now.getMessage()));
      } catch (BufferUnderflowException tooShort) {
        reply = failed(Failure.damaged("a request is shorter than its kind says"));
      } catch (OutOfMemoryError tooMuch) {
        reply = failed(Message.heapTooSmall());
      } catch (RuntimeException bug) {
        reply = Message.of(Message.FAILED).putByte(BUG).putRest("a bug in the node: " + bug);
      }
      if (reply != null && isHeard) {
        isHeard = tell(reply);
      }
    }
  }

  /** Sends a reply; false if nobody reads it any more. What was sent before can still be read. */
  private boolean tell(Message reply) {
    try {
      tellNotices();
      reply.write(channel);
      return true;
    } catch (IOException gone) {
      return false;
    }
  }

  private void tellNotices() throws IOException {
    for (String line = node.notice(); line != null; line = node.notice()) {
      Message.of(Message.NOTICE).putRest(line).write(channel);
    }
  }

  private static Message failed(Failure failure) {
    return Message.of(Message.FAILED)
        .putByte(failure.kind().number())
        .putRest(String.valueOf(failure.getMessage()));
  }

  private @Nullable Message answer(Message request) throws InterruptedException {
    return switch (request.kind()) {
      case Message.HELLO -> hello(request);
      case Message.BATCH -> batch(request);
      case Message.ASK -> ask(request);
      case Message.RELEASE -> {
        release(request.getLong());
        yield null;
      }
      case Message.DESCRIBE -> describe(request.getLongs());
      case Message.STATE -> state(request);
      case Message.STATS -> stats();
      case Message.CLASSES -> classes();
      case Message.BYE -> {
        leave();
        yield null;
      }
      default -> throw Failure.damaged("there is no request of kind %d", request.kind());
    };
  }

  private Feeds feeds() {
    Feeds known = feeds;
    if (known == null) {
      throw Failure.damaged("a client asks before it has said what for");
    }
    return known;
  }

  private Message hello(Message request) throws InterruptedException {
    int protocol = request.getInt();
    String version = request.getText();
    if (protocol != Message.PROTOCOL || !version.equals(node.version())) {
      throw Failure.wrongCall(
          "the client is Gristway %s (protocol %d) and the node %s (protocol %d): install the same"
              + " version for both, and restart the node",
          version, protocol, node.version(), Message.PROTOCOL);
    }
    int rank = request.getInt();
    batches = request.getInt();
    int datasetVersion = request.getInt();
    String snapshotId = request.getText();
    Settings settings = new Settings(request.getText(), request.getText(), request.getRest());
    Feeds opened = node.feeds(this, settings, datasetVersion, snapshotId);
    feeds = opened;
    Message welcome = Message.of(Message.WELCOME);
    Snapshot snapshot = opened.dataset().snapshot();
    welcome.putLong(ProcessHandle.current().pid());
    welcome.putLong(snapshot.sampleCount()).putLong(snapshot.dataBytes());
    if (settings.mode() == Settings.Mode.EXACT) {
      welcome.putLong(0).putLong(0).putLong(0).putLong(0);
      return welcome.putLong(snapshot.version()).putRest(snapshot.id().toString());
    }
    RankFeed feed = feed(rank);
    long first = feed.firstEpoch();
    return welcome
        .putLong(first)
        .putLong(feed.firstStep())
        .putLong(feed.steps(first))
        .putLong(feed.steps(first + 1))
        .putLong(snapshot.version())
        .putRest(snapshot.id().toString());
  }

  private RankFeed feed(int rank) throws InterruptedException {
    feeds().job().refuseLost();
    RankFeed known = attached;
    if (known == null) {
      known = feeds().attach(rank, this, batches);
      attached = known;
    } else if (known.rank() != rank) {
      throw Failure.damaged("a client asks for batches of two ranks");
    }
    return known;
  }

  private Message batch(Message request) throws InterruptedException {
    RankFeed feed = feed(request.getInt());
    return pieces(
        feed, feed.take(this, request.getLong(), request.getLong(), 1, 1, request.getInt()));
  }

  private Message ask(Message request) throws InterruptedException {
    int rank = request.getInt();
    long epoch = request.getLong();
    long iteration = request.getLong();
    long start = request.getLong();
    int atOnce = request.getInt();
    int workers = request.getInt();
    long[] indices = request.getLongs();
    if (indices.length == 0 || atOnce < 1 || workers < 1) {
      throw Failure.wrongCall("a request must name at least one index");
    }
    if (feeds().settings().mode() == Settings.Mode.EXACT) {
      return exactly(indices);
    }
    RankFeed feed = feed(rank);
    AskedIndices asked = feeds().asked();
    AskedIndices.Noted noted = asked.ask(epoch, iteration, indices);
    List<Piece> pieces = List.of();
    try {
      pieces = feed.take(this, epoch, start, indices.length, atOnce, workers);
    } finally {
      if (pieces.isEmpty()) {
        asked.takeBack(noted); // it may be asked again
      }
    }
    return pieces(feed, pieces);
  }

  private Message pieces(RankFeed feed, List<Piece> pieces) {
    if (pieces.isEmpty()) {
      return Message.of(Message.OVER);
    }
    Message reply = Message.of(Message.PIECES).putInt(pieces.size());
    for (Piece piece : pieces) {
      Piece.Memory memory = piece.memory();
      lent.put(++tokens, new LentPiece(feed, this, piece));
      put(reply, memory.descriptor, memory.serial, memory.batch, piece.first(), piece.count());
    }
    return reply;
  }

  private void put(Message reply, int descriptor, long serial, Batch batch, int first, int count) {
    reply.putLong(tokens).putInt(descriptor).putLong(serial);
    reply.putLong(batch.offset()).putLong(batch.areaBytes()).putInt(first).putInt(count);
  }

  /** Each client reads what it names by itself, so that none waits for another's storage. */
  private Message exactly(long[] indices) {
    AskedLoader loader = exact;
    if (loader == null) {
      Settings settings = feeds().settings();
      LoaderOptions options =
          settings.options(0, feeds().dataset().snapshot()).withWorld(World.of(1));
      HandoverRoom room = feeds().exactRoom(); // first: it may be refused
      loader = AskedLoader.exact(feeds().dataset().share(), options, room);
      exact = loader;
      exactSerial = Piece.nextSerial();
    }
    Batch batch = loader.getIfRoom(indices);
    if (batch == null) {
      HandoverRoom room = feeds().exactRoom();
      throw new NoRoom(
          Failure.wrongCall(
              "the batches that are in use have %d of the %d bytes that they may have at once: let"
                  + " go of views of earlier batches, copy what must be kept, or give more with"
                  + " handover=",
              room.taken(), room.most()));
    }
    lent.put(++tokens, batch::close);
    Path file = loader.handoverPath();
    Message reply = Message.of(Message.PIECES).putInt(1);
    int descriptor = Integer.parseInt(file.getFileName().toString());
    put(reply, descriptor, exactSerial, batch, 0, indices.length);
    return reply;
  }

  /** Lets the client go with what it still uses. */
  private void leave() {
    feeds().keep(lent.values());
    for (Runnable each : lent.values()) {
      if (each instanceof LentPiece(RankFeed feed, RankFeed.Client client, Piece piece)) {
        feed.leaveWith(client, piece);
      }
    }
    lent.clear();
  }

  private void release(long token) {
    Runnable release = lent.remove(token);
    if (release != null) {
      release.run();
    }
  }

  private Message describe(long[] samples) {
    Message reply = Message.of(Message.DESCRIPTION);
    Dataset dataset = feeds().dataset();
    for (long sample : samples) {
      if (sample < 0 || sample >= dataset.size()) {
        throw Failure.wrongCall("there is no sample %d", sample);
      }
      SampleEntry entry = dataset.snapshot().entry(sample);
      reply.putText(entry.keyText()).putInt(entry.partEnds().length);
      for (int i = 0; i < entry.partEnds().length; i++) {
        reply.putText(entry.shape().parts().get(i)).putLong(entry.partEnds()[i]);
      }
    }
    return reply;
  }

  private Message state(Message request) throws InterruptedException {
    int rank = request.getInt();
    RankFeed known = attached;
    // Also of a job that has lost a node: how far it has come is known all the same.
    RankFeed feed = known != null && known.rank() == rank ? known : feed(rank);
    return Message.of(Message.TEXT).putRest(feed.stateAt(request.getLong(), request.getLong()));
  }

  private Message stats() {
    String lines =
        feeds().counters().entrySet().stream()
            .map(entry -> entry.getKey().text() + "=" + entry.getValue())
            .collect(Collectors.joining("\n"));
    return Message.of(Message.TEXT).putRest(lines);
  }

  private Message classes() {
    Snapshot snapshot = feeds().dataset().snapshot();
    StringBuilder text = new StringBuilder();
    for (int label = 0; label < snapshot.namedLabelCount(); label++) {
      int number = label;
      snapshot
          .labelName(label)
          .ifPresent(name -> text.append(number).append('\0').append(name).append('\0'));
    }
    return Message.of(Message.TEXT).putRest(text.toString());
  }

  /** Sends what there is to tell, and what says nothing: that fails if nobody is there. */
  @Override
  public void check() {
    try {
      tellNotices();
      Message.of(Message.NOTICE).write(channel);
    } catch (IOException gone) {
      throw Failure.environment("the client is gone");
    }
  }

  /** Gives back all that the client had. */
  @Override
  public void close() {
    if (attached != null) {
      feeds().detach(attached, this); // first: what nobody reads on is not built in again
    }
    List.copyOf(lent.keySet()).forEach(this::release);
    if (exact != null) {
      exact.close();
    }
  }
}
