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

/**
 * How two nodes begin to talk, wherever they do. Each proves that it knows the job's secret, by
 * numbers that the other has just made up, so that nothing that was overheard is of use.
 *
 * <pre>
 * who connects                          who listens
 * purpose 8, node 4, number 32     -&gt;
 *                                  &lt;-   number 32
 * proof 32                         -&gt;
 *                                  &lt;-   0, and no more; or 1, proof 32
 * </pre>
 *
 * <p>Who connects proves first, so a stranger never gets a proof with which it could test guessed
 * secrets. It is told that its proof is wrong, since a connection that merely ends may be tried
 * again.
 *
 * <p>After that both may say texts, of a length that the other has set. Nothing here has a time
 * limit: that is for {@link TimeLimit}.
 */
final class MutualProof {

  private static final int NUMBER = 32;
  private static final int WRONG = 0;
  private static final int RIGHT = 1;
  private static final SecureRandom RANDOM = new SecureRandom();

  /** Whoever has come is no node of the job, or none that speaks as this one. */
  static class Stranger extends IOException {
    private static final long serialVersionUID = 1;

    Stranger(String message) {
      super(message);
    }
  }

  /** Whoever is at the other end speaks as a node does, and does not know the secret. */
  static final class OtherSecret extends Stranger {
    private static final long serialVersionUID = 1;

    OtherSecret() {
      super("it does not know the job's secret");
    }
  }

  private final JobSecret secret;
  private final String purpose;
  private final int own;

  /**
   * Makes what one node proves itself with.
   *
   * @param purpose of 8 characters; both ends must have the same
   * @param own number of this node
   */
  MutualProof(JobSecret secret, String purpose, int own) {
    this.secret = secret;
    this.purpose = purpose;
    this.own = own;
  }

  private byte[] magic() {
    return purpose.getBytes(StandardCharsets.US_ASCII);
  }

  /**
   * Proves itself to the node that listens at the other end, and has it do the same.
   *
   * @throws OtherSecret if it has another secret
   * @throws Stranger if it is no node
   * @throws IOException if the connection ends before that is known
   */
  void connect(Socket socket, int peer) throws IOException {
    DataOutputStream out = new DataOutputStream(socket.getOutputStream());
    DataInputStream in = new DataInputStream(socket.getInputStream());
    byte[] number = number();
    out.write(ByteBuffer.allocate(12 + NUMBER).put(magic()).putInt(own).put(number).array());
    out.flush();
    byte[] others = exactly(in, NUMBER);
    byte[] said = numbers(own, peer);
    out.write(secret.proof(purpose + " connects", number, others, said));
    out.flush();
    int answer = in.readUnsignedByte();
    if (answer != RIGHT && answer != WRONG) {
      throw new Stranger("it does not speak as a node does");
    }
    if (answer == WRONG
        || !JobSecret.isSame(
            exactly(in, JobSecret.PROOF_BYTES),
            secret.proof(purpose + " listens", number, others, said))) {
      throw new OtherSecret();
    }
  }

  /**
   * Makes whoever has connected prove itself, and does the same; the number of its node.
   *
   * @throws Stranger if it does not prove that it is one of the job
   */
  int accept(Socket socket) throws IOException {
    DataOutputStream out = new DataOutputStream(socket.getOutputStream());
    DataInputStream in = new DataInputStream(socket.getInputStream());
    if (!Arrays.equals(exactly(in, magic().length), magic())) {
      throw new Stranger("it does not speak as a node does");
    }
    int peer = in.readInt();
    byte[] others = exactly(in, NUMBER);
    byte[] number = number();
    byte[] said = numbers(peer, own);
    out.write(number);
    out.flush();
    if (!JobSecret.isSame(
        exactly(in, JobSecret.PROOF_BYTES),
        secret.proof(purpose + " connects", others, number, said))) {
      out.write(WRONG);
      out.flush();
      throw new OtherSecret();
    }
    out.write(RIGHT);
    out.write(secret.proof(purpose + " listens", others, number, said));
    out.flush();
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

  /** Says a text. */
  static void write(Socket socket, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    byte[] message = ByteBuffer.allocate(4 + bytes.length).putInt(bytes.length).put(bytes).array();
    socket.getOutputStream().write(message);
  }

  /**
   * Hears a text.
   *
   * @param mostBytes that it may have
   */
  static String read(Socket socket, int mostBytes) throws IOException {
    DataInputStream in = new DataInputStream(socket.getInputStream());
    int length = in.readInt();
    if (length < 0 || length > mostBytes) {
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
}
