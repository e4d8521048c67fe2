package org.gristway.peer;

import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import org.gristway.Failure;

/**
 * How two nodes begin to push samples to each other. Both prove that they are of the job ({@link
 * MutualProof}); then both say what they are about to do, and neither goes on if that differs.
 *
 * <pre>
 * who connects                          who listens
 * "GWPEER02", proofs of both       &lt;-&gt;
 * intent length 4, intent          -&gt;
 *                                  &lt;-   intent length 4, intent
 * 1                                -&gt;
 * </pre>
 *
 * <p>The last word is that of who connects. Until then either may give up, and who connects tries
 * again.
 */
final class Greeting {

  private static final String PURPOSE = "GWPEER02";
  private static final int MOST_INTENT = 1 << 16;
  private static final int READY = 1;

  private final MutualProof proof;
  private final String intent;

  /**
   * Makes what one node greets with.
   *
   * @param own number of this node
   * @param intent what it is about to do, in lines of {@code name=value}
   */
  Greeting(JobSecret secret, int own, String intent) {
    this.proof = new MutualProof(secret, PURPOSE, own);
    this.intent = intent;
  }

  /** Is told when all but the last word is said. */
  interface LastWord {

    /** Ends the time limit, or fails if it has expired: then the last word is not said. */
    void comes() throws IOException;
  }

  /**
   * Greets the node that listens at the other end.
   *
   * @param last is told before the word by which the other takes this node for connected
   * @throws MutualProof.OtherSecret if it has another secret
   * @throws IOException if it may be tried again
   * @throws Failure (wrong call) if it is about to do something else
   */
  void connect(Socket socket, int peer, LastWord last) throws IOException {
    proof.connect(socket, peer);
    MutualProof.write(socket, intent);
    compare(MutualProof.read(socket, MOST_INTENT), peer);
    last.comes();
    socket.getOutputStream().write(READY);
  }

  /**
   * Answers whoever has connected; the number of its node.
   *
   * @param proven is run when it has proven to be one of the job
   * @throws MutualProof.Stranger if it has not
   * @throws IOException if it has given up
   * @throws Failure (wrong call) if it is about to do something else
   */
  int accept(Socket socket, Runnable proven) throws IOException {
    int peer = proof.accept(socket);
    proven.run();
    String theirs = MutualProof.read(socket, MOST_INTENT);
    MutualProof.write(socket, intent);
    compare(theirs, peer);
    if (socket.getInputStream().read() != READY) {
      throw new EOFException("it breaks off");
    }
    return peer;
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
