package org.gristway.peer;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Arrays;
import org.gristway.Failure;

/**
 * How two nodes begin to talk. Each proves that it knows the job's secret, by numbers that the
 * other has just made up, so that nothing that was overheard is of use; then both say what they are
 * about to do, and neither goes on if that differs.
 *
 * <pre>
 * who connects                          who listens
 * "GWPEER01", node 4, number 32    -&gt;
 *                                  &lt;-   number 32
 * proof 32                         -&gt;
 *                                  &lt;-   proof 32
 * intent length 4, intent          -&gt;
 *                                  &lt;-   intent length 4, intent
 * </pre>
 *
 * <p>Who connects proves first: a stranger gets nothing to try secrets on.
 */
final class Greeting {

  private static final byte[] MAGIC = "GWPEER01".getBytes(StandardCharsets.US_ASCII);
  private static final int NUMBER = 32;
  private static final int MOST_INTENT = 1 << 16;
  private static final int PATIENCE_MILLIS = 5000;
  private static final SecureRandom RANDOM = new SecureRandom();

  /** Whoever greets is no node of the job, or none that speaks as this one. */
  static final class Stranger extends IOException {
    private static final long serialVersionUID = 1;

    Stranger(String message) {
      super(message);
    }
  }

  private final JobSecret secret;
  private final int own;
  private final String intent;

  /**
   * @param own number of this node
   * @param intent what it is about to do, in lines of {@code name=value}
   */
  Greeting(JobSecret secret, int own, String intent) {
    this.secret = secret;
    this.own = own;
    this.intent = intent;
  }

  /**
   * Greets the node that listens at the other end.
   *
   * @throws Failure (wrong call) if it is about to do something else, or has another secret
   */
  void connect(Socket socket, int peer) throws IOException {
    socket.setSoTimeout(PATIENCE_MILLIS);
    DataOutputStream out = new DataOutputStream(socket.getOutputStream());
    DataInputStream in = new DataInputStream(socket.getInputStream());
    byte[] number = number();
    out.write(MAGIC);
    out.writeInt(own);
    out.write(number);
    out.flush();
    byte[] others = exactly(in, NUMBER);
    byte[] said = numbers(own, peer);
    out.write(secret.proof("connect", number, others, said));
    out.flush();
    byte[] proof = in.readNBytes(JobSecret.PROOF_BYTES);
    if (proof.length == 0
        || !JobSecret.isSame(proof, secret.proof("listen", number, others, said))) {
      throw Failure.wrongCall(
          "node %d at %s has another secret than this one: is it of the same job?",
          peer, socket.getRemoteSocketAddress());
    }
    writeText(out, intent);
    compare(readText(in), peer);
    socket.setSoTimeout(0);
  }

  /**
   * Answers whoever has connected; the number of its node.
   *
   * @throws Stranger if it does not prove that it is one of the job
   * @throws Failure (wrong call) if it is about to do something else
   */
  int accept(Socket socket) throws IOException {
    socket.setSoTimeout(PATIENCE_MILLIS);
    DataOutputStream out = new DataOutputStream(socket.getOutputStream());
    DataInputStream in = new DataInputStream(socket.getInputStream());
    if (!Arrays.equals(exactly(in, MAGIC.length), MAGIC)) {
      throw new Stranger("it does not speak as a node does");
    }
    int peer = in.readInt();
    byte[] others = exactly(in, NUMBER);
    byte[] number = number();
    byte[] said = numbers(peer, own);
    out.write(number);
    out.flush();
    if (!JobSecret.isSame(
        exactly(in, JobSecret.PROOF_BYTES), secret.proof("connect", others, number, said))) {
      throw new Stranger("it does not know the job's secret");
    }
    out.write(secret.proof("listen", others, number, said));
    out.flush();
    String theirs = readText(in);
    writeText(out, intent);
    compare(theirs, peer);
    socket.setSoTimeout(0);
    return peer;
  }

  private static byte[] number() {
    byte[] number = new byte[NUMBER];
    RANDOM.nextBytes(number);
    return number;
  }

  private static byte[] numbers(int connecting, int listening) {
    return ByteBuffer.allocate(8).putInt(connecting).putInt(listening).array();
  }

  private static void writeText(DataOutputStream out, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    out.writeInt(bytes.length);
    out.write(bytes);
    out.flush();
  }

  private static String readText(DataInputStream in) throws IOException {
    int length = in.readInt();
    if (length < 0 || length > MOST_INTENT) {
      throw new Stranger("it says something of " + length + " bytes");
    }
    return new String(exactly(in, length), StandardCharsets.UTF_8);
  }

  private static byte[] exactly(DataInputStream in, int length) throws IOException {
    byte[] bytes = in.readNBytes(length);
    if (bytes.length < length) {
      throw new EOFException("it breaks off");
    }
    return bytes;
  }

  /** Refuses to go on with a node that is about to do something else, naming the first of it. */
  private void compare(String theirs, int peer) {
    if (theirs.equals(intent)) {
      return;
    }
    String[] own = intent.split("\n", -1);
    String[] other = theirs.split("\n", -1);
    for (int i = 0; i < Math.max(own.length, other.length); i++) {
      String here = i < own.length ? own[i] : "nothing more";
      String there = i < other.length ? other[i] : "nothing more";
      if (!here.equals(there)) {
        throw Failure.wrongCall(
            "node %d is about to do something else than this one: it has %s, and this one %s",
            peer, there, here);
      }
    }
  }
}
