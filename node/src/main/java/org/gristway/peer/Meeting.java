package org.gristway.peer;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gristway.Failure;
import org.gristway.plan.World;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.protocols.SYM_ENCRYPT;
import org.jgroups.protocols.TCP;
import org.jgroups.protocols.TCPPING;
import org.jgroups.protocols.UNICAST3;
import org.jgroups.protocols.pbcast.GMS;
import org.jgroups.protocols.pbcast.NAKACK2;
import org.jgroups.protocols.pbcast.STABLE;
import org.jspecify.annotations.Nullable;

/**
 * How the nodes of a job find each other: a group of JGroups, whose messages prove that their
 * sender knows the job's secret ({@link SealedTransport}), and what they say is encrypted with a
 * key made of it, so that a stranger has no part in it. In it each node tells node 0 its card: its
 * number, and where its {@link Mesh} listens; and node 0 tells all of them to everybody. Whoever is
 * connected to then must prove again that it is one of the job ({@link Greeting}).
 *
 * <p>Node 0 begins the group and the others know of no other node to join, so there is never a
 * second group to merge with, and nobody but node 0 needs to be reached.
 *
 * <p>The group is left as soon as the nodes are connected. From then on their connections tell who
 * is there: those are what ranks depend on, and a second opinion could only differ.
 */
final class Meeting implements AutoCloseable {

  /** Between two cards, for those who have missed one; and between two looks for node 0. */
  private static final long AGAIN_MILLIS = 200;

  private static final long JOIN_MILLIS = 2000;
  private static final long BEGIN_MILLIS = 1;
  private static final Logger GROUPS = Logger.getLogger("org.jgroups"); // or its level is lost
  private static final Logger TRANSPORT = Logger.getLogger(SealedTransport.class.getName());

  /** JGroups bundles messages up to 64,000 bytes; its views and our cards grow with the nodes. */
  private static final int MOST_BYTES = 1 << 17;

  private static final int MOST_BYTES_A_NODE = 1 << 7;
  private static final String CARDS = "GWCARD01";
  private static final int END = -1;

  private final MeetingPoint point;
  private final String group;
  private final InetSocketAddress own;
  private final boolean isFirst;
  private final JobSecret secret;
  private final int node;
  private final @Nullable InetSocketAddress[] cards; // by node
  private final Consumer<String> strangers;
  private final AtomicBoolean isStrangerTold = new AtomicBoolean();
  private @Nullable JChannel channel;
  private @Nullable Failure failure;

  /**
   * Makes ready to meet.
   *
   * @param group that all nodes of the job call it
   * @param own where this node's mesh listens
   * @param strangers told a line about the first of them
   */
  Meeting(
      World world,
      MeetingPoint point,
      String group,
      InetSocketAddress own,
      JobSecret secret,
      Consumer<String> strangers) {
    this.point = point;
    this.group = group;
    this.own = own;
    this.isFirst = world.node() == 0;
    this.secret = secret;
    this.strangers = strangers;
    this.node = world.node();
    this.cards = new InetSocketAddress[world.nodes()];
    cards[world.node()] = own;
    GROUPS.setLevel(Level.SEVERE); // it tells how it goes about it, at length
    TRANSPORT.setLevel(Level.OFF); // it tells of every stranger, at least a line
  }

  /** What this node has to tell: its own card; node 0, all that it has. */
  private synchronized byte[] told() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeUTF(CARDS);
      for (int each = 0; each < cards.length; each++) {
        InetSocketAddress at = cards[each];
        if (at != null && (isFirst || each == node)) {
          out.writeInt(each);
          out.writeUTF(at.getAddress().getHostAddress());
          out.writeInt(at.getPort());
        }
      }
      out.writeInt(END);
    } catch (IOException never) {
      throw new UncheckedIOException(never);
    }
    return bytes.toByteArray();
  }

  /**
   * Where all nodes listen, by their number, once all are there.
   *
   * @throws Failure if one does not come in time, or is there twice
   */
  List<InetSocketAddress> gather(long patienceSeconds) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(patienceSeconds);
    while (!isComplete()) {
      if (System.nanoTime() > deadline) {
        throw Failure.environment(
            "%s of this job did not come within %d s: are they started, with the same secret, and do"
                + " they reach this one at %s?",
            missing(), patienceSeconds, own.getAddress().getHostAddress());
      }
      JChannel open = channel;
      if (open == null) {
        open = isFirst ? begun() : joined();
        channel = open;
        if (open != null) {
          JChannel telling = open;
          Thread.ofPlatform().name("gristway-card").daemon().start(() -> tell(telling));
        }
      }
      synchronized (this) {
        if (!isComplete()) {
          wait(AGAIN_MILLIS);
        }
      }
    }
    return Arrays.asList(cards);
  }

  /** Tells it as long as the meeting lasts: somebody may have come too late to hear it before. */
  private void tell(JChannel open) {
    try {
      while (open.isConnected()) {
        byte[] said = told();
        List<Address> members = open.getView().getMembers();
        int end = isFirst ? members.size() : 1;
        for (Address member : members.subList(isFirst ? 1 : 0, end)) {
          open.send(new BytesMessage(member, said));
        }
        TimeUnit.MILLISECONDS.sleep(AGAIN_MILLIS);
      }
    } catch (Exception closed) {
      // It is over.
    }
  }

  /** The group, as its first member. */
  private JChannel begun() {
    try {
      int port = point instanceof MeetingPoint.Host host ? host.address().getPort() : freePort();
      JChannel begun = channel(port, List.of(), BEGIN_MILLIS);
      begun.connect(group);
      if (point instanceof MeetingPoint.Folder folder) {
        folder.publish(group, new InetSocketAddress(own.getAddress(), port));
      }
      return begun;
    } catch (Exception refused) {
      throw failed(refused);
    }
  }

  /** The group, if its first member is there. */
  private @Nullable JChannel joined() {
    InetSocketAddress first =
        switch (point) {
          case MeetingPoint.Host host -> host.address();
          case MeetingPoint.Folder folder -> folder.look(group);
        };
    // A name may only be known when its machine has come up.
    InetSocketAddress resolved =
        first == null ? null : new InetSocketAddress(first.getHostString(), first.getPort());
    if (resolved == null || resolved.isUnresolved() || !isThere(resolved)) {
      return null;
    }
    try {
      JChannel joined = channel(freePort(), List.of(resolved), JOIN_MILLIS);
      joined.connect(group);
      if (joined.getView().size() > 1) {
        return joined;
      }
      joined.close(); // alone: the first is not there yet
      return null;
    } catch (Exception refused) {
      throw failed(refused);
    }
  }

  /** True if somebody listens there: JGroups takes seconds to find that out. */
  private static boolean isThere(InetSocketAddress first) {
    try (Socket socket = new Socket()) {
      socket.connect(first, (int) JOIN_MILLIS);
      return true;
    } catch (IOException notYet) {
      return false;
    }
  }

  /** One that nobody listens at now: JGroups wants to be told. */
  private int freePort() throws IOException {
    try (ServerSocket free = new ServerSocket(0, 1, own.getAddress())) {
      return free.getLocalPort();
    }
  }

  private JChannel channel(int port, List<InetSocketAddress> known, long joinMillis)
      throws Exception {
    InetAddress listen = own.getAddress();
    int mostBytes = MOST_BYTES + MOST_BYTES_A_NODE * cards.length;
    TCP transport = new SealedTransport(secret, mostBytes, this::refuse);
    transport.setBindAddress(listen).setBindPort(port).setPortRange(0);
    transport.setSockConnTimeout((int) JOIN_MILLIS);
    SYM_ENCRYPT encryption = new SYM_ENCRYPT();
    encryption.setSecretKey(secret.key("meeting"));
    encryption.symAlgorithm("AES/CBC/PKCS5Padding").symIvLength(16);
    JChannel made =
        new JChannel(
            transport,
            new TCPPING().setInitialHosts(known).setPortRange(0),
            encryption,
            new NAKACK2(),
            new UNICAST3(),
            new STABLE(),
            new GMS().setJoinTimeout(joinMillis).setMaxJoinAttempts(1).printLocalAddress(false));
    made.setDiscardOwnMessages(true);
    made.setReceiver(new Cards());
    return made;
  }

  /** Tells of a stranger, once: it may try as long as the meeting lasts. */
  private void refuse(Address from, String why) {
    if (isStrangerTold.compareAndSet(false, true)) {
      strangers.accept("a connection from " + from + " to where nodes meet is refused: " + why);
    }
  }

  private Failure failed(Exception refused) {
    Throwable cause = refused;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return Failure.environment(
        "the nodes of this job cannot meet at %s: %s; if another job is there, set GRISTWAY_PORT",
        point instanceof MeetingPoint.Host host ? host.address() : own.getAddress(),
        String.valueOf(cause.getMessage()));
  }

  private synchronized boolean isComplete() {
    if (failure != null) {
      throw failure;
    }
    return Arrays.stream(cards).allMatch(each -> each != null);
  }

  private synchronized String missing() {
    List<Integer> nodes =
        IntStream.range(0, cards.length).filter(node -> cards[node] == null).boxed().toList();
    return (nodes.size() == 1 ? "node " : "nodes ")
        + nodes.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }

  /** Notes the cards of others. */
  private final class Cards implements Receiver {

    @Override
    public void receive(Message message) {
      if (!message.hasArray()) {
        return;
      }
      try (DataInputStream in =
          new DataInputStream(
              new ByteArrayInputStream(
                  message.getArray(), message.getOffset(), message.getLength()))) {
        int each = in.readUTF().equals(CARDS) ? in.readInt() : END;
        while (each != END) {
          note(each, new InetSocketAddress(in.readUTF(), in.readInt()));
          each = in.readInt();
        }
      } catch (IOException | IllegalArgumentException other) {
        // They were no cards.
      }
    }
  }

  private synchronized void note(int number, InetSocketAddress at) {
    if (number < 0 || number >= cards.length) {
      failure =
          Failure.wrongCall(
              "there is a node %d at %s, and this job is to have %d: start as many as the launcher"
                  + " says",
              number, at, cards.length);
    } else if (cards[number] == null) {
      cards[number] = at;
    } else if (!cards[number].equals(at)) {
      failure =
          Failure.wrongCall(
              "two nodes say that they are node %d, those at %s and %s: does another job use this"
                  + " secret and meet at the same place?",
              number, cards[number], at);
    }
    notifyAll();
  }

  @Override
  public void close() {
    JChannel open = channel;
    if (open != null) {
      open.close();
    }
    if (isFirst && point instanceof MeetingPoint.Folder folder) {
      try {
        folder.clear(group);
      } catch (IOException left) {
        // The next job of this name writes it anew.
      }
    }
  }
}
