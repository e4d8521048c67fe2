package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.gristway.Failure;

/** A node that whoever knows the secret greets with anything. */
final class Greeted implements AutoCloseable {

  private static final JobSecret SECRET = JobSecret.of("a secret of this test");
  private static final String INTENT = "plan=1\nseed=1\n";
  private static final int OWN = 0;
  private static final int PEER = 1;

  /** What is said before the proof is due, what the proof is changed by, and what is said after. */
  record Said(byte[] hello, byte[] proof, byte[] intent) {}

  private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());

  Greeted() throws IOException {}

  @Override
  public void close() throws IOException {
    server.close();
  }

  /** A greeting with up to two changes. */
  static Said mutated(Random random) {
    byte[][] parts = {hello(), new byte[0], intent()};
    for (int changes = random.nextInt(3); changes > 0; changes--) {
      int part = random.nextInt(parts.length);
      byte[] bytes = parts[part].length == 0 ? new byte[1] : parts[part];
      if (random.nextInt(3) == 0) {
        bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 10));
      } else {
        bytes[random.nextInt(bytes.length)] ^= (byte) (1 + random.nextInt(255));
      }
      parts[part] = bytes;
    }
    return new Said(parts[0], parts[1], parts[2]);
  }

  static byte[] hello() {
    byte[] magic = "GWPEER02".getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(44).put(magic).putInt(PEER).put(new byte[32]).array();
  }

  static byte[] intent() {
    byte[] text = INTENT.getBytes(StandardCharsets.UTF_8);
    byte ready = 1;
    return ByteBuffer.allocate(5 + text.length).putInt(text.length).put(text).put(ready).array();
  }

  /** True if it is accepted, which it must not be unless all of it is as it should be. */
  boolean greet(Said said) throws Exception {
    try (Socket peer = new Socket(server.getInetAddress(), server.getLocalPort());
        Socket socket = server.accept()) {
      peer.setSoLinger(true, 0); // no port waits for what may still come
      CompletableFuture<Void> saying =
          CompletableFuture.runAsync(() -> say(peer, said), task -> Thread.ofVirtual().start(task));
      boolean isAccepted;
      try {
        int node = new Greeting(SECRET, OWN, INTENT).accept(socket, () -> {});
        byte[] hello = Arrays.copyOf(said.hello(), 44);
        assertThat(hello).startsWith("GWPEER02".getBytes(StandardCharsets.US_ASCII));
        assertThat(node).isEqualTo(ByteBuffer.wrap(hello).getInt(8));
        assertThat(said.proof()).isEqualTo(new byte[said.proof().length]);
        assertThat(said.intent()).startsWith(intent());
        isAccepted = true;
      } catch (IOException | Failure refused) {
        isAccepted = false;
      }
      socket.shutdownOutput();
      saying.get(20, TimeUnit.SECONDS);
      return isAccepted;
    }
  }

  private static void say(Socket peer, Said said) {
    try {
      OutputStream out = peer.getOutputStream();
      DataInputStream in = new DataInputStream(peer.getInputStream());
      out.write(said.hello());
      if (said.hello().length < 44) {
        peer.shutdownOutput();
      }
      byte[] others = in.readNBytes(32);
      byte[] number = Arrays.copyOfRange(Arrays.copyOf(said.hello(), 44), 12, 44);
      byte[] nodes =
          ByteBuffer.allocate(8)
              .putInt(ByteBuffer.wrap(Arrays.copyOf(said.hello(), 44)).getInt(8))
              .putInt(OWN)
              .array();
      byte[] proof = SECRET.proof("GWPEER02 connects", number, others, nodes);
      for (int i = 0; i < Math.min(proof.length, said.proof().length); i++) {
        proof[i] ^= said.proof()[i];
      }
      out.write(proof);
      out.write(said.intent());
      peer.shutdownOutput();
      in.readAllBytes();
    } catch (IOException refused) {
      // As it should be.
    }
  }
}
