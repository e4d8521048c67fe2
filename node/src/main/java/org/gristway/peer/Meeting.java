package org.gristway.peer;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.gristway.Failure;
import org.gristway.plan.World;

/**
 * How the nodes of a job find each other. Node 0 is its host, at an address that all know ({@link
 * MeetingHost}). The others go there and nowhere else ({@link MeetingGuest}), so nobody but node 0
 * must be found, in whichever order they come. Each guest leaves its card: where its {@link Mesh}
 * listens. When the host has the cards of all, it tells them to everybody.
 *
 * <pre>
 * a guest                               the host
 * "GWMEET01", proofs of both       &lt;-&gt;
 * card                             -&gt;
 *                                  &lt;-   "missing", numbers of nodes: each time that one comes or goes
 *                                  &lt;-   "all", the address of each node; or "wrong" or "late", why;
 *                                       or "busy", why: then the guest comes again
 * </pre>
 *
 * <p>Each of these is a text of lines. A card belongs to its connection: with that it is gone.
 *
 * <p>Whoever is connected to then must prove again that it is of the job ({@link Greeting}). The
 * meeting is over when all are connected. From then on their connections tell who is there: those
 * are what ranks depend on, and a second opinion could only differ.
 */
sealed interface Meeting extends AutoCloseable permits MeetingHost, MeetingGuest {

  /** What the proofs of both ends are for. */
  String PURPOSE = "GWMEET01";

  String MISSING = "missing";
  String ALL = "all";
  String WRONG = "wrong";
  String LATE = "late";
  String BUSY = "busy";

  /** Which meeting a node goes to, and where its own mesh listens. */
  record Card(String job, int nodes, InetSocketAddress at) {

    static Card parse(String text) throws IOException {
      String[] lines = text.split("\n", -1);
      try {
        return new Card(lines[0], Integer.parseInt(lines[1]), Meeting.address(lines[2]));
      } catch (IllegalArgumentException | ArrayIndexOutOfBoundsException other) {
        throw new MutualProof.Stranger("its card cannot be read");
      }
    }

    String text() {
      return job + "\n" + nodes + "\n" + Meeting.text(at);
    }
  }

  /**
   * Makes ready to meet.
   *
   * @param job that all its nodes call it
   * @param own where this node's mesh listens
   * @param strangers told a line about each that was not let in
   */
  static Meeting of(
      World world,
      MeetingPoint point,
      String job,
      InetSocketAddress own,
      JobSecret secret,
      Consumer<String> strangers) {
    Card card = new Card(job, world.nodes(), own);
    MutualProof proof = new MutualProof(secret, PURPOSE, world.node());
    return world.node() == 0
        ? new MeetingHost(card, point, proof, strangers)
        : new MeetingGuest(card, world.node(), point, proof);
  }

  /**
   * Waits for all nodes; where they listen, by their number. It is called once.
   *
   * @throws Failure if one does not come in time, is there twice, or has another secret
   */
  List<InetSocketAddress> gather(long patienceSeconds) throws InterruptedException;

  @Override
  void close();

  /** The most bytes that a text has in a meeting of some nodes. */
  static int mostBytes(int nodes) {
    return (1 << 12) + nodes * (1 << 7);
  }

  static String text(InetSocketAddress at) {
    return at.getAddress().getHostAddress() + " " + at.getPort();
  }

  static InetSocketAddress address(String text) {
    int space = text.indexOf(' ');
    if (space < 0) {
      throw new IllegalArgumentException(text);
    }
    return new InetSocketAddress(
        InetAddress.ofLiteral(text.substring(0, space)),
        Integer.parseInt(text.substring(space + 1)));
  }

  /** Some nodes, as failures name them. */
  static String names(List<Integer> nodes) {
    return (nodes.size() == 1 ? "node " : "nodes ")
        + nodes.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }
}
