package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.gristway.Failure;
import org.gristway.plan.World;
import org.gristway.testing.Seeds;
import org.jgroups.Version;
import org.jgroups.stack.IpAddress;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Nodes that find each other over loopback. */
@Tag("java")
@Timeout(value = 90, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class MeetingTest {

  private static final JobSecret SECRET = JobSecret.of("a secret of this test");
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

  @TempDir Path folder;
  private final List<String> refusals = Collections.synchronizedList(new ArrayList<>());

  private static InetSocketAddress card(int node) {
    return new InetSocketAddress(LOOPBACK, 20_000 + node);
  }

  private static MeetingPoint.Host somewhere() throws Exception {
    try (ServerSocket free = new ServerSocket(0, 1, LOOPBACK)) {
      return new MeetingPoint.Host(new InetSocketAddress(LOOPBACK, free.getLocalPort()));
    }
  }

  private Meeting meeting(int nodes, int node, MeetingPoint point, JobSecret secret) {
    World world = new World(nodes, nodes, node);
    return new Meeting(world, point, "job", card(node), secret, refusals::add);
  }

  /** All nodes of a job meet, in the order in which they are named; what each has found. */
  private List<List<InetSocketAddress>> meet(
      List<Integer> order, long pauseMillis, MeetingPoint point) throws Exception {
    int nodes = order.size();
    List<Meeting> meetings = Collections.synchronizedList(new ArrayList<>());
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<List<InetSocketAddress>>> found = new ArrayList<>();
      for (int node : order) {
        Callable<List<InetSocketAddress>> joining =
            () -> {
              Meeting meeting = meeting(nodes, node, point, SECRET);
              meetings.add(meeting);
              return meeting.gather(60);
            };
        found.add(threads.submit(joining));
        Thread.sleep(pauseMillis);
      }
      List<List<InetSocketAddress>> all = new ArrayList<>();
      for (Future<List<InetSocketAddress>> each : found) {
        all.add(each.get());
      }
      return all;
    } finally {
      meetings.parallelStream().forEach(Meeting::close);
    }
  }

  @Test
  void nodes_that_begin_at_once_or_one_by_one_find_each_other() throws Exception {
    Random random = new Random(Seeds.of("nodes_that_begin_at_once_or_one_by_one"));
    for (long pause : new long[] {0, random.nextInt(1500)}) {
      List<Integer> order = new ArrayList<>(IntStream.range(0, 4).boxed().toList());
      Collections.shuffle(order, random);
      MeetingPoint point = somewhere();
      List<InetSocketAddress> cards = IntStream.range(0, 4).mapToObj(MeetingTest::card).toList();
      assertThat(meet(order, pause, point)).hasSize(4).containsOnly(cards);
    }
  }

  @Test
  void nodes_find_each_other_by_a_folder_and_leave_nothing_in_it() throws Exception {
    MeetingPoint point = new MeetingPoint.Folder(folder);
    assertThat(meet(List.of(2, 0, 1), 0, point))
        .hasSize(3)
        .containsOnly(List.of(card(0), card(1), card(2)));
    try (var left = Files.walk(folder)) {
      assertThat(left.filter(Files::isRegularFile)).isEmpty();
    }
  }

  @Test
  void a_node_that_does_not_come_is_named() throws Exception {
    MeetingPoint point = somewhere();
    try (Meeting alone = meeting(3, 1, point, SECRET)) {
      assertThatThrownBy(() -> alone.gather(1))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("nodes 0, 2 of this job did not come within 1 s");
    }
  }

  @Test
  void a_node_with_another_secret_is_not_heard() throws Exception {
    MeetingPoint point = somewhere();
    JobSecret other = JobSecret.of("another secret than theirs");
    try (Meeting first = meeting(2, 0, point, SECRET);
        Meeting stranger = meeting(2, 1, point, other);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(4));
      Future<List<InetSocketAddress>> overheard = threads.submit(() -> stranger.gather(4));
      assertThatThrownBy(found::get)
          .isInstanceOf(ExecutionException.class)
          .hasMessageContaining("node 1 of this job did not come");
      assertThatThrownBy(overheard::get)
          .isInstanceOf(ExecutionException.class)
          .hasMessageContaining("node 0 of this job did not come");
    }
    assertThat(refusals)
        .singleElement()
        .asString()
        .matches(
            "a connection from 127\\.0\\.0\\.1:\\d+ to where nodes meet is refused: it does not know"
                + " the job's secret");
  }

  /** Says something at a port, and leaves the connection open. */
  private static Socket stranger(InetSocketAddress at, byte[] said) throws Exception {
    Socket socket = new Socket();
    while (!socket.isConnected()) {
      try {
        socket.connect(at);
      } catch (ConnectException notYet) {
        socket = new Socket();
        Thread.sleep(20);
      }
    }
    socket.setSoTimeout(10_000);
    try {
      socket.getOutputStream().write(said);
    } catch (SocketException refused) {
      // Before all of it was said.
    }
    return socket;
  }

  /** It is told nothing, but for the good-bye of JGroups where it has introduced itself. */
  private static void assertClosed(Socket socket) throws IOException {
    try (socket) {
      assertThat(socket.getInputStream().readAllBytes()).hasSizeLessThan(5);
    } catch (SocketException reset) {
      // Closed before all of it was read.
    }
  }

  /** How nodes begin to speak, up to the length of a message, and then some of that. */
  private static byte[] message(int port, int length, byte[] said) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      IpAddress from = new IpAddress(new InetSocketAddress(LOOPBACK, port));
      out.writeBytes("bela");
      out.writeShort(Version.version);
      out.writeShort(from.serializedSize());
      from.writeTo(out);
      out.writeInt(length);
      out.write(said);
    }
    return bytes.toByteArray();
  }

  private static byte[] noise(Random random, int length) {
    byte[] noise = new byte[length];
    random.nextBytes(noise);
    return noise;
  }

  @Test
  void noise_where_nodes_meet_does_not_keep_them_from_it() throws Exception {
    Random random = new Random(Seeds.of("noise_where_nodes_meet"));
    MeetingPoint.Host point = somewhere();
    InetSocketAddress at = point.address();
    try (Meeting first = meeting(2, 0, point, SECRET);
        Meeting second = meeting(2, 1, point, SECRET);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(60));
      assertClosed(stranger(at, message(1, Integer.MAX_VALUE, noise(random, 100))));
      for (int i = 0; i < 20; i++) {
        assertClosed(stranger(at, noise(random, 4 + random.nextInt(5000))));
        byte[] said = noise(random, random.nextInt(1000));
        assertClosed(stranger(at, message(2 + i, said.length, said)));
      }
      Socket half = stranger(at, message(30, 1000, noise(random, 500)));
      Socket silent = stranger(at, new byte[0]);
      assertThat(second.gather(60)).containsExactly(card(0), card(1));
      assertThat(found.get()).containsExactly(card(0), card(1));
      half.close();
      silent.close();
    }
    assertThat(refusals)
        .containsExactly(
            "a connection from 127.0.0.1:1 to where nodes meet is refused: it says something of"
                + " 2147483647 bytes");
  }

  @Test
  void two_nodes_of_one_number_are_refused() throws Exception {
    MeetingPoint point = somewhere();
    try (Meeting first = meeting(3, 0, point, SECRET);
        Meeting second = meeting(3, 1, point, SECRET);
        Meeting again =
            new Meeting(new World(3, 3, 1), point, "job", card(9), SECRET, refusals::add);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(60));
      threads.submit(() -> second.gather(60));
      threads.submit(() -> again.gather(60));
      assertThatThrownBy(found::get)
          .isInstanceOf(ExecutionException.class)
          .hasMessageContaining("two nodes say that they are node 1");
      threads.shutdownNow(); // the others would wait for a node that has given up
    }
  }
}
