package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.gristway.Failure;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Test;

/** Who is refused: without the secret, with another plan, or with messages that nobody can mean. */
class MeshStrangersTest extends MeshTesting {

  @Test
  void a_node_with_another_secret_is_refused_by_both() throws Exception {
    Mesh first = mesh(2, 2, 0, SECRET, "plan=1\n");
    Mesh second = mesh(2, 2, 1, JobSecret.of("another secret altogether"), "plan=1\n");
    assertThatThrownBy(() -> second.join(addresses(), 5))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("node 0")
        .hasMessageContaining("another secret");
    assertThatThrownBy(() -> first.join(addresses(), 1))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("node 1")
        .hasMessageContaining("has not come within 1 s");
  }

  @Test
  void a_service_that_is_no_node_is_not_taken_for_one_with_another_secret() throws Exception {
    CompletableFuture<Void> greets;
    try (ServerSocket service = new ServerSocket(0)) {
      String greeting = "SSH-2.0-Service_9.6p1 Somewhere or other\r\n";
      greets = CompletableFuture.runAsync(() -> greetAll(service, greeting), THREADS);
      Mesh mesh = mesh(2, 2, 1, SECRET, "plan=1\n");
      InetSocketAddress address = new InetSocketAddress("127.0.0.1", service.getLocalPort());
      assertThatThrownBy(() -> mesh.join(List.of(address, mesh.address()), 1))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("node 0")
          .hasMessageContaining("it does not speak as a node does")
          .hasMessageNotContaining("secret");
    }
    greets.get();
  }

  /** Greets all who come, as many services do, until it is closed. */
  private static void greetAll(ServerSocket service, String greeting) {
    byte[] bytes = greeting.getBytes(StandardCharsets.US_ASCII);
    while (!service.isClosed()) {
      try (Socket socket = service.accept()) {
        socket.getOutputStream().write(bytes);
        socket.getInputStream().readAllBytes(); // until the other has gone
      } catch (IOException gone) {
        // The next may come.
      }
    }
  }

  @Test
  void one_whose_time_is_up_before_its_last_word_is_not_taken_for_connected() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    try (Socket late = new Socket()) {
      late.connect(mesh.address());
      assertThatThrownBy(
              () ->
                  new Greeting(SECRET, 1, "plan=1\n")
                      .connect(
                          late,
                          0,
                          () -> {
                            throw new SocketTimeoutException("it takes too long");
                          }))
          .isInstanceOf(SocketTimeoutException.class);
    }
    impostor(mesh).close(); // it comes again, and is let in
  }

  @Test
  void a_stranger_where_nodes_meet_is_told_and_they_meet_without_it() throws Exception {
    MeetingPoint point = new MeetingPoint.Folder(folder.resolve("meet"));
    Mesh first = mesh(2, 2, 0, SECRET, "plan=1\n");
    Mesh stranger = mesh(2, 2, 1, JobSecret.of("another secret altogether"), "plan=1\n");
    CompletableFuture<Void> met = CompletableFuture.runAsync(() -> meet(first, point), THREADS);
    assertThatThrownBy(() -> stranger.meet(point, "job", 120))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("has another secret than node 1: set the same GRISTWAY_JOB_SECRET");
    assertThat(refusals)
        .containsExactly(
            "a connection from 127.0.0.1 to where nodes meet is refused: it does not know the job's"
                + " secret");
    meet(mesh(2, 2, 1, SECRET, "plan=1\n"), point);
    met.get();
  }

  private static void meet(Mesh mesh, MeetingPoint point) {
    try {
      mesh.meet(point, "job", 30);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void nodes_that_are_about_to_do_different_things_refuse_to_start_naming_what_differs() {
    mesh(2, 2, 0, SECRET, "dataset=a/1\nseed=1\n");
    mesh(2, 2, 1, SECRET, "dataset=a/1\nseed=2\n");
    assertThatThrownBy(this::joinAll)
        .hasCauseInstanceOf(Failure.class)
        .hasMessageContaining("seed=1")
        .hasMessageContaining("seed=2");
  }

  @Test
  void a_greeting_that_was_overheard_is_of_no_use() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    // What a node says, up to the proof that it gives for the number it was given.
    byte[] number = new byte[32];
    byte[] hello = ByteBuffer.allocate(44).put("GWPEER02".getBytes()).putInt(1).put(number).array();
    byte[] proof;
    try (Socket socket = new Socket()) {
      socket.connect(mesh.address());
      socket.getOutputStream().write(hello);
      byte[] others = new DataInputStream(socket.getInputStream()).readNBytes(32);
      byte[] nodes = ByteBuffer.allocate(8).putInt(1).putInt(0).array();
      proof = SECRET.proof("GWPEER02 connects", number, others, nodes);
    }
    try (Socket socket = new Socket()) {
      socket.connect(mesh.address());
      socket.getOutputStream().write(hello);
      socket.getInputStream().readNBytes(32);
      socket.getOutputStream().write(proof);
      assertThat(socket.getInputStream().readAllBytes()).as("refused").containsExactly(0);
    }
  }

  @Test
  void strangers_neither_hinder_a_job_nor_get_anything() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    List<Socket> silent = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      Socket socket = new Socket();
      socket.connect(mesh.address());
      silent.add(socket); // and says nothing
    }
    Random random = new Random(Seeds.of("strangers"));
    for (int i = 0; i < 20; i++) {
      byte[] noise = new byte[1 + random.nextInt(200)];
      random.nextBytes(noise);
      try (Socket socket = new Socket()) {
        socket.connect(mesh.address());
        socket.getOutputStream().write(noise);
        socket.shutdownOutput();
        assertThat(socket.getInputStream().readAllBytes()).isEmpty();
      } catch (IOException refused) {
        // As well.
      }
    }
    mesh(2, 2, 1, SECRET, "plan=1\n");
    joinAll();
    push(meshes.get(0).office().rank(0), 1, 0, 5);
    assertHas(meshes.get(1).office().rank(1).await(0, 0, 0), 5);
    for (Socket socket : silent) {
      socket.close();
    }
  }

  @Test
  void silent_strangers_take_places_from_each_other_and_not_from_nodes() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    List<Socket> silent = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      Socket socket = new Socket();
      socket.connect(mesh.address());
      silent.add(socket);
    }
    impostor(mesh).close(); // it is let in the first time it comes
    for (Socket socket : silent) {
      socket.close();
    }
    assertThat(refusals).hasSizeLessThanOrEqualTo(20);
  }

  /** Stands in for a node, and closes the first connection when a proof was given there. */
  private static ServerSocket slowStart(Mesh mesh) throws IOException {
    ServerSocket server = new ServerSocket(0, 50, mesh.address().getAddress());
    THREADS.execute(
        () -> {
          try (Socket first = server.accept()) {
            first.getInputStream().readNBytes(44);
            first.getOutputStream().write(new byte[32]);
            first.getInputStream().readNBytes(JobSecret.PROOF_BYTES);
          } catch (IOException over) {
            return;
          }
          try {
            Socket second = server.accept();
            Socket real = new Socket(mesh.address().getAddress(), mesh.address().getPort());
            THREADS.execute(() -> pass(second, real));
            THREADS.execute(() -> pass(real, second));
          } catch (IOException over) {
            // The test has failed.
          }
        });
    return server;
  }

  private static void pass(Socket from, Socket to) {
    try (from;
        to) {
      from.getInputStream().transferTo(to.getOutputStream());
    } catch (IOException over) {
      // As it should be.
    }
  }

  @Test
  void a_connection_that_ends_before_it_is_greeted_is_tried_again() throws Exception {
    Mesh first = mesh(2, 2, 0, SECRET, "plan=1\n");
    Mesh second = mesh(2, 2, 1, SECRET, "plan=1\n");
    try (ServerSocket slow = slowStart(first)) {
      InetSocketAddress there = (InetSocketAddress) slow.getLocalSocketAddress();
      CompletableFuture<Void> joined = CompletableFuture.runAsync(() -> join(first), THREADS);
      second.join(List.of(there, second.address()), 30);
      joined.get();
      push(first.office().rank(0), 1, 0, 5);
      assertHas(second.office().rank(1).await(0, 0, 0), 5);
    }
  }

  @Test
  void a_node_that_gives_a_greeting_up_at_any_moment_may_greet_again() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    for (int moment = 0; moment < 4; moment++) {
      try (Socket socket = new Socket(mesh.address().getAddress(), mesh.address().getPort())) {
        if (moment > 0) {
          new MutualProof(SECRET, "GWPEER02", 1).connect(socket, 0);
        }
        if (moment > 1) {
          MutualProof.write(socket, "plan=1\n");
        }
        if (moment > 2) {
          assertThat(MutualProof.read(socket, 100)).isEqualTo("plan=1\n");
        }
      }
    }
    impostor(mesh).close();
    assertThat(refusals).contains("a connection from 127.0.0.1 is refused: it breaks off");
  }

  private static byte[] message(int... kindAndInts) {
    ByteBuffer buffer = ByteBuffer.allocate(200).order(ByteOrder.LITTLE_ENDIAN);
    buffer.put((byte) kindAndInts[0]);
    for (int i = 1; i < kindAndInts.length; i++) {
      buffer.putInt(kindAndInts[i]);
    }
    byte[] bytes = new byte[buffer.position()];
    buffer.flip().get(bytes);
    return bytes;
  }

  @Test
  void messages_that_cannot_be_meant_end_the_job_and_name_the_node() throws Exception {
    List<byte[]> odd =
        List.of(
            message(99),
            message(2, 0, 0, 0, 0, 0), // moves a rank that is not its own
            message(2, -1, 0, 0, 0, 0),
            message(3, 1, 1, 0, 0, 0, 0, 1), // pushes to a rank that is not here
            message(3, 1, 0, 0, 0, 0, 0, -1), // no number of samples
            message(3, 1, 0, 0, 0, 0, 0, 1, BATCH, 3, 0, -1, -1), // for a place that is not there
            message(3, 1, 0, 0, 0, 0, 0, 2, 5, 3, 0, -1, -1, 5, 3, 0, -1, -1), // twice for one
            message(3, 1, 0, 0, 0, 2 * WINDOW + 1, 0, 1), // further ahead than there is room
            message(3, 1, 0, 0, 0, -1, -1, 1), // for no step
            message(2, 1, -1, -1, 0, 0), // is in no epoch
            message(3, 1, 0, 0, 0, 0, 0, 1, 0, 3, 0, 1 << 30, 1), // a sample of another length
            message(3, 1, 0, 0, 0, 0, 0, 1, 0, 1 << 20, 0, 10, 0), // a sample that is not there
            message(5, 1 << 30), // a reason without end
            message(6, 1, 0, 1, 3, 0, 0), // wants what a rank keeps that is not here
            message(6, 1, 0, 0, 1 << 20, 0, 0), // a sample that is not there
            message(6, 1, 0, 0, 3, 0, 2), // a tier that is not there
            message(7, 1, 0, 10, 0)); // answers what it was not asked
    for (byte[] each : odd) {
      losses.clear();
      Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
      try (Socket socket = impostor(mesh)) {
        OutputStream out = new DataOutputStream(socket.getOutputStream());
        out.write(each);
        out.flush();
        assertThatThrownBy(() -> mesh.office().rank(0).await(1, 0, 0))
            .isInstanceOf(Failure.class)
            .hasMessageContaining("node 1")
            .hasMessageContaining("is lost");
      }
      assertThat(losses).hasSize(1);
    }
  }
}
