package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.DataOutputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.gristway.Failure;
import org.gristway.plan.World;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Nodes that find each other over loopback. Mostly they wait, so the tests do it at once. */
@Tag("java")
@Execution(ExecutionMode.CONCURRENT)
@Timeout(value = 90, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class MeetingTest {

  private static final Set<Integer> PORTS = ConcurrentHashMap.newKeySet();
  private static final JobSecret SECRET = JobSecret.of("a secret of this test");
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

  @TempDir Path folder;
  private final List<String> refusals = Collections.synchronizedList(new ArrayList<>());

  private static InetSocketAddress card(int node) {
    return new InetSocketAddress(LOOPBACK, 20_000 + node);
  }

  /** A port that is free and no other test's: they run at the same time. */
  private static MeetingPoint.Host somewhere() throws Exception {
    while (true) {
      try (ServerSocket free = new ServerSocket(0, 1, LOOPBACK)) {
        if (PORTS.add(free.getLocalPort())) {
          return new MeetingPoint.Host(new InetSocketAddress(LOOPBACK, free.getLocalPort()));
        }
      }
    }
  }

  private Meeting meeting(int nodes, int node, MeetingPoint point, JobSecret secret) {
    World world = new World(nodes, nodes, node);
    return Meeting.of(world, point, "job", card(node), secret, refusals::add);
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
    try (Meeting alone = meeting(3, 1, somewhere(), SECRET)) {
      assertThatThrownBy(() -> alone.gather(1))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("node 0 of this job did not come within 1 s")
          .hasMessageContaining("When it was last tried: Connection refused");
    }
    MeetingPoint point = somewhere();
    try (Meeting first = meeting(4, 0, point, SECRET);
        Meeting second = meeting(4, 1, point, SECRET);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> waiting = threads.submit(() -> second.gather(60));
      assertThatThrownBy(() -> first.gather(3))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("nodes 2, 3 of this job did not come within 3 s");
      end(first);
      assertThatThrownBy(waiting::get)
          .as("who waits is told by node 0, and does not wait for longer")
          .hasMessageContaining("nodes 2, 3 of this job did not come within 3 s");
    }
  }

  /** Far sooner than a node is waited for, which the time limit of the test is less than. */
  @Test
  void a_node_with_another_secret_is_told_so_at_once_and_so_is_the_first() throws Exception {
    MeetingPoint.Host point = somewhere();
    JobSecret other = JobSecret.of("another secret than theirs");
    try (Meeting first = meeting(2, 0, point, SECRET);
        Meeting stranger = meeting(2, 1, point, other);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(8));
      assertThatThrownBy(() -> stranger.gather(120))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("node 0 at ")
          .hasMessageContaining(":" + point.address().getPort() + " has another secret than node 1")
          .hasMessageContaining("set the same GRISTWAY_JOB_SECRET on all machines");
      String refusal =
          "a connection from 127.0.0.1 to where nodes meet is refused: it does not know the job's"
              + " secret";
      assertThat(refusals).isNotEmpty().containsOnly(refusal);
      assertThatThrownBy(found::get)
          .hasMessageContaining("node 1 of this job did not come within 8 s")
          .hasMessageContaining(refusal);
    }
  }

  /** As where a job is started while the one before it, which had another secret, ends. */
  @Test
  void a_node_that_is_refused_waits_a_moment_for_its_own_job() throws Exception {
    MeetingPoint point = somewhere();
    try (Meeting former = meeting(2, 0, point, JobSecret.of("the secret of the last job"));
        Meeting first = meeting(2, 0, point, SECRET);
        Meeting second = meeting(2, 1, point, SECRET);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<?> ending = threads.submit(() -> former.gather(60));
      Future<List<InetSocketAddress>> found = threads.submit(() -> second.gather(60));
      while (refusals.isEmpty()) {
        Thread.sleep(10);
      }
      ending.cancel(true);
      end(former);
      assertThat(first.gather(60)).containsExactly(card(0), card(1));
      assertThat(found.get()).containsExactly(card(0), card(1));
    }
  }

  @Test
  void a_node_that_leaves_before_all_are_there_may_come_again_from_elsewhere() throws Exception {
    MeetingPoint point = somewhere();
    World world = new World(3, 3, 1);
    InetSocketAddress elsewhere = card(9);
    try (Meeting first = meeting(3, 0, point, SECRET);
        Meeting leaving = meeting(3, 1, point, SECRET);
        Meeting again = Meeting.of(world, point, "job", elsewhere, SECRET, refusals::add);
        Meeting third = meeting(3, 2, point, SECRET);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(60));
      Thread left =
          Thread.ofPlatform().start(() -> assertThatThrownBy(() -> leaving.gather(60)).isNotNull());
      Thread.sleep(500); // most likely it is there then; if it is not, that is no harm
      left.interrupt();
      left.join();
      Future<List<InetSocketAddress>> returned = threads.submit(() -> again.gather(60));
      assertThat(third.gather(60)).containsExactly(card(0), elsewhere, card(2));
      assertThat(returned.get()).containsExactly(card(0), elsewhere, card(2));
      assertThat(found.get()).containsExactly(card(0), elsewhere, card(2));
    }
  }

  @Test
  void two_nodes_of_one_number_are_refused_and_all_are_told() throws Exception {
    MeetingPoint point = somewhere();
    World world = new World(4, 4, 1);
    try (Meeting first = meeting(4, 0, point, SECRET);
        Meeting second = meeting(4, 1, point, SECRET);
        Meeting again = Meeting.of(world, point, "job", card(9), SECRET, refusals::add);
        Meeting third = meeting(4, 2, point, SECRET);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<List<InetSocketAddress>>> all = new ArrayList<>();
      for (Meeting each : List.of(second, again, third)) {
        all.add(threads.submit(() -> each.gather(60)));
      }
      all.add(
          threads.submit(
              () -> {
                try (first) {
                  return first.gather(60);
                }
              }));
      // Where one of them comes when it is over, it waits for a node that has given up.
      assertThatThrownBy(all.getLast()::get)
          .hasMessageContaining("two nodes say that they are node 1");
      int told = 0;
      for (Future<?> each : all) {
        try {
          each.get(2, TimeUnit.SECONDS);
        } catch (ExecutionException failed) {
          assertThat(failed).hasMessageContaining("two nodes say that they are node 1");
          told++;
        } catch (TimeoutException late) {
          each.cancel(true);
        }
      }
      assertThat(told).isGreaterThanOrEqualTo(3);
    }
  }

  @Test
  void a_node_that_the_job_is_not_to_have_is_refused() throws Exception {
    MeetingPoint point = somewhere();
    try (Meeting first = meeting(2, 0, point, SECRET);
        Meeting third = meeting(3, 2, point, SECRET);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(60));
      assertThatThrownBy(() -> third.gather(60))
          .hasMessageContaining("there is a node 2")
          .hasMessageContaining("this job is to have 2");
      assertThatThrownBy(found::get).hasMessageContaining("there is a node 2");
    }
  }

  @Test
  void jobs_of_one_secret_that_meet_at_one_port_do_not_mix() throws Exception {
    MeetingPoint point = somewhere();
    World world = new World(2, 2, 1);
    try (Meeting first = meeting(2, 0, point, SECRET);
        Meeting second = meeting(2, 1, point, SECRET);
        Meeting other = Meeting.of(world, point, "other", card(9), SECRET, refusals::add);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(60));
      assertThatThrownBy(() -> other.gather(2))
          .hasMessageContaining("node 0 of this job did not come within 2 s")
          .hasMessageContaining("node 0 there is of another job");
      assertThat(second.gather(60)).containsExactly(card(0), card(1));
      assertThat(found.get()).containsExactly(card(0), card(1));
    }
  }

  @Test
  void a_port_that_is_taken_is_waited_for_and_then_told_with_what_to_do() throws Exception {
    try (ServerSocket taken = new ServerSocket(0, 1, LOOPBACK);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      MeetingPoint point =
          new MeetingPoint.Host(new InetSocketAddress(LOOPBACK, taken.getLocalPort()));
      try (Meeting first = meeting(2, 0, point, SECRET)) {
        assertThatThrownBy(() -> first.gather(60))
            .isInstanceOf(Failure.class)
            .hasMessage(
                "node 0 cannot listen at 127.0.0.1:%d, where the nodes of this job are to meet:"
                    + " Address already in use; if something else listens there, set GRISTWAY_PORT,"
                    + " or the port in GRISTWAY_NODES, to a free one on all machines",
                taken.getLocalPort());
      }
      try (Meeting first = meeting(2, 0, point, SECRET);
          Meeting second = meeting(2, 1, point, SECRET)) {
        Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(60));
        end(taken);
        assertThat(second.gather(60)).containsExactly(card(0), card(1));
        assertThat(found.get()).containsExactly(card(0), card(1));
      }
    }
  }

  /** Closes what is closed again in the end. */
  private static void end(AutoCloseable open) throws Exception {
    open.close();
  }

  /** Connects to a port, as soon as somebody listens there. */
  private static Socket stranger(InetSocketAddress at) throws Exception {
    while (true) {
      Socket socket = new Socket();
      try {
        socket.connect(at);
        socket.setSoTimeout(30_000);
        return socket;
      } catch (ConnectException notYet) {
        socket.close();
        Thread.sleep(20);
      }
    }
  }

  private static byte[] noise(Random random, int length) {
    byte[] noise = new byte[length];
    random.nextBytes(noise);
    return noise;
  }

  /** Says something at a port; what comes back until the connection is closed. */
  private static byte[] answer(InetSocketAddress at, byte[] said) throws Exception {
    try (Socket socket = stranger(at)) {
      socket.getOutputStream().write(said);
      socket.shutdownOutput();
      return socket.getInputStream().readAllBytes();
    } catch (SocketException reset) {
      return new byte[0]; // closed before all of it was said or read
    }
  }

  /**
   * Strangers who say nothing, one byte per second, or nothing and leave. If nodes waited for each
   * of them for any time worth mentioning, they would not meet within their patience.
   */
  @Test
  void two_hundred_silent_strangers_do_not_delay_a_meeting() throws Exception {
    MeetingPoint.Host point = somewhere();
    AtomicBoolean isOver = new AtomicBoolean();
    List<Socket> silent = Collections.synchronizedList(new ArrayList<>());
    try (Meeting first = meeting(3, 0, point, SECRET);
        Meeting second = meeting(3, 1, point, SECRET);
        Meeting third = meeting(3, 2, point, SECRET);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(60));
      for (int i = 0; i < 200; i++) {
        silent.add(stranger(point.address()));
        stranger(point.address()).close();
      }
      for (int i = 0; i < 20; i++) {
        threads.submit(() -> dribble(point.address(), isOver));
        threads.submit(
            () -> {
              while (!isOver.get()) {
                silent.add(stranger(point.address()));
                Thread.sleep(100);
              }
              return null;
            });
      }
      Future<List<InetSocketAddress>> there = threads.submit(() -> second.gather(20));
      Thread.sleep(200);
      List<InetSocketAddress> all = List.of(card(0), card(1), card(2));
      assertThat(third.gather(20)).isEqualTo(all);
      assertThat(there.get()).isEqualTo(all);
      assertThat(found.get()).isEqualTo(all);
      isOver.set(true);
      threads.shutdownNow();
    } finally {
      for (Socket socket : List.copyOf(silent)) {
        socket.close();
      }
    }
  }

  /** Says one byte per second, of what a node would say, and comes again when it is sent away. */
  private static Void dribble(InetSocketAddress at, AtomicBoolean isOver) throws Exception {
    byte[] said = "GWMEET01".getBytes(StandardCharsets.US_ASCII);
    while (!isOver.get()) {
      try (Socket socket = stranger(at)) {
        for (int i = 0; !isOver.get(); i++) {
          socket.getOutputStream().write(said[i % said.length]);
          Thread.sleep(1000);
        }
      } catch (IOException sentAway) {
        Thread.sleep(100);
      }
    }
    return null;
  }

  @Test
  void noise_where_nodes_meet_is_answered_with_nothing_and_keeps_nobody_from_it() throws Exception {
    Random random = new Random(Seeds.of("noise_where_nodes_meet"));
    MeetingPoint.Host point = somewhere();
    InetSocketAddress at = point.address();
    try (Meeting first = meeting(2, 0, point, SECRET);
        Meeting second = meeting(2, 1, point, SECRET);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<List<InetSocketAddress>> found = threads.submit(() -> first.gather(60));
      byte[] magic = "GWMEET01".getBytes(StandardCharsets.US_ASCII);
      for (int i = 0; i < 30; i++) {
        assertThat(answer(at, noise(random, random.nextInt(5000)))).isEmpty();
        byte[] hello = noise(random, random.nextInt(200));
        System.arraycopy(magic, 0, hello, 0, Math.min(8, hello.length));
        // At the most it is given a number to prove itself with, and told that it has not.
        assertThat(answer(at, hello)).hasSizeLessThanOrEqualTo(33);
      }
      for (int length : new int[] {Integer.MAX_VALUE, -1, 1 << 20}) {
        try (Socket socket = stranger(at)) {
          new MutualProof(SECRET, Meeting.PURPOSE, 1).connect(socket, 0);
          new DataOutputStream(socket.getOutputStream()).writeInt(length);
          assertThat(socket.getInputStream().read()).isEqualTo(-1);
        }
        while (!refusals.toString().contains("it says something of " + length + " bytes")) {
          Thread.sleep(10);
        }
      }
      for (int i = 0; i < 30; i++) {
        try (Socket socket = stranger(at)) {
          new MutualProof(SECRET, Meeting.PURPOSE, 1).connect(socket, 0);
          byte[] said = noise(random, random.nextInt(100));
          MutualProof.write(socket, new String(said, StandardCharsets.ISO_8859_1));
          socket.getInputStream().readAllBytes();
        }
      }
      assertThat(second.gather(60)).containsExactly(card(0), card(1));
      assertThat(found.get()).containsExactly(card(0), card(1));
    }
  }

  @Test
  void noise_from_where_node_0_should_be_is_not_believed() throws Exception {
    Random random = new Random(Seeds.of("noise_from_where_node_0_should_be"));
    try (ServerSocket server = new ServerSocket(0, 50, LOOPBACK);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      threads.submit(
          () -> {
            while (!server.isClosed()) {
              try (Socket socket = server.accept()) {
                socket.getOutputStream().write(noise(random, random.nextInt(32)));
              }
            }
            return null;
          });
      MeetingPoint point =
          new MeetingPoint.Host(new InetSocketAddress(LOOPBACK, server.getLocalPort()));
      try (Meeting second = meeting(2, 1, point, SECRET)) {
        assertThatThrownBy(() -> second.gather(2))
            .isInstanceOf(Failure.class)
            .hasMessageContaining("node 0 of this job did not come within 2 s");
      }
      end(server);
      threads.shutdownNow();
    }
  }
}
