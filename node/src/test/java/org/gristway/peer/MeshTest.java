package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.node.Packed;
import org.gristway.plan.Caching;
import org.gristway.plan.Exchange;
import org.gristway.plan.World;
import org.gristway.read.Parcel;
import org.gristway.read.PeerCaches;
import org.gristway.read.Post;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Nodes of one process that are connected over loopback. */
@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class MeshTest {

  private static final JobSecret SECRET = JobSecret.of("a secret of this test");
  private static final int WINDOW = 2;
  private static final int BATCH = 40;

  /** Not the common pool, which may have one thread for all who wait for each other. */
  private static final Executor THREADS = task -> Thread.ofVirtual().start(task);

  @TempDir static Path folder;
  private static Dataset dataset;

  private final List<Mesh> meshes = new ArrayList<>();
  private final List<Failure> losses = Collections.synchronizedList(new ArrayList<>());
  private volatile PeerCaches kept = PeerCaches.NONE; // by all
  private final List<String> refusals = Collections.synchronizedList(new ArrayList<>());

  @BeforeAll
  static void pack() {
    dataset = Dataset.open(Packed.in(folder).path());
  }

  @AfterAll
  static void closeDataset() {
    dataset.close();
  }

  @AfterEach
  void closeMeshes() {
    // At once, as the nodes of a job end: each waits for the others to hear of it.
    List<Thread> closing =
        meshes.stream().map(mesh -> Thread.ofVirtual().start(mesh::close)).toList();
    for (Thread each : closing) {
      try {
        each.join();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private Mesh mesh(int ranks, int nodes, int node, JobSecret secret, String intent) {
    Mesh mesh =
        new Mesh(
            new World(ranks, nodes, node),
            dataset.snapshot(),
            BATCH,
            WINDOW,
            new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
            secret,
            intent,
            this::keep,
            new Mesh.Listener() {
              @Override
              public void lost(Failure why) {
                losses.add(why);
              }

              @Override
              public void refused(String line) {
                refusals.add(line);
              }
            });
    meshes.add(mesh);
    return mesh;
  }

  private boolean keep(int rank, long sample, int tier, MemorySegment target) {
    return kept.fetch(rank, sample, tier, target);
  }

  private List<InetSocketAddress> addresses() {
    return meshes.stream().map(Mesh::address).toList();
  }

  private void joinAll() throws ExecutionException, InterruptedException {
    List<CompletableFuture<Void>> joins = new ArrayList<>();
    for (Mesh mesh : meshes) {
      joins.add(CompletableFuture.runAsync(() -> join(mesh), THREADS));
    }
    for (CompletableFuture<Void> each : joins) {
      each.get();
    }
  }

  private void join(Mesh mesh) {
    try {
      mesh.join(addresses(), 10);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private void connect(int ranks, int nodes) throws ExecutionException, InterruptedException {
    for (int node = 0; node < nodes; node++) {
      mesh(ranks, nodes, node, SECRET, "plan=1\n");
    }
    joinAll();
  }

  private static byte[] bytes(long sample) {
    byte[] bytes = new byte[(int) dataset.snapshot().length(sample)];
    new Random(sample).nextBytes(bytes);
    return bytes;
  }

  private static void push(Post post, int to, long step, long... samples)
      throws InterruptedException {
    Parcel parcel = post.begin(to, 0, step);
    for (int i = 0; i < samples.length; i++) {
      byte[] bytes = bytes(samples[i]);
      parcel.add(i, samples[i], bytes.length).asByteBuffer().put(bytes);
    }
    post.send(parcel);
  }

  private static void assertHas(Parcel parcel, long... samples) {
    assertThat(parcel.count()).isEqualTo(samples.length);
    long at = 0;
    for (int i = 0; i < samples.length; i++) {
      assertThat(parcel.sample(i)).isEqualTo(samples[i]);
      byte[] found = new byte[(int) parcel.length(i)];
      parcel.data().asSlice(at, found.length).asByteBuffer().get(found);
      assertThat(found).isEqualTo(bytes(samples[i]));
      at += found.length;
    }
  }

  @Test
  void what_a_rank_pushes_arrives_at_any_other() throws Exception {
    connect(6, 3);
    for (int from = 0; from < 6; from++) {
      for (int to = 0; to < 6; to++) {
        if (from != to) {
          push(meshes.get(from / 2).office().rank(from), to, 0, from, 10 + to, 20);
        }
      }
    }
    for (int from = 0; from < 6; from++) {
      for (int to = 0; to < 6; to++) {
        if (from != to) {
          Parcel parcel = meshes.get(to / 2).office().rank(to).await(from, 0, 0);
          assertHas(parcel, from, 10 + to, 20);
        }
      }
    }
  }

  @Test
  void many_parcels_of_any_size_arrive_as_they_were_sent() throws Exception {
    connect(2, 2);
    Random random = new Random(Seeds.of("many_parcels"));
    Post sender = meshes.get(0).office().rank(0);
    Post receiver = meshes.get(1).office().rank(1);
    for (int step = 0; step < 300; step++) {
      long[] samples = random.longs(random.nextInt(40), 0, 100).toArray();
      push(sender, 1, step, samples);
      assertHas(receiver.await(0, 0, step), samples);
      receiver.done(0, step);
    }
    assertThat(meshes.get(1).office().waitingBytes()).isZero();
    assertThat(meshes.get(1).office().mostWaitingBytes()).isLessThan(40 * 2000);
  }

  @Test
  void who_pushes_too_far_ahead_waits_for_the_other_to_come() throws Exception {
    connect(2, 2);
    int room = Exchange.room(WINDOW);
    Post sender = meshes.get(0).office().rank(0);
    for (int step = 0; step < room; step++) {
      push(sender, 1, step, step);
    }
    CompletableFuture<Void> further =
        CompletableFuture.runAsync(
            () -> {
              try {
                push(sender, 1, room, 9);
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
            },
            THREADS);
    assertThatThrownBy(() -> further.get(200, TimeUnit.MILLISECONDS))
        .isInstanceOf(TimeoutException.class);
    meshes.get(1).office().rank(1).done(0, 0);
    further.get();
    assertHas(meshes.get(1).office().rank(1).await(0, 0, room), 9);
  }

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
  void a_stranger_where_nodes_meet_is_told_and_they_meet_without_it() throws Exception {
    MeetingPoint point = new MeetingPoint.Folder(folder.resolve("meet"));
    Mesh first = mesh(2, 2, 0, SECRET, "plan=1\n");
    Mesh stranger = mesh(2, 2, 1, JobSecret.of("another secret altogether"), "plan=1\n");
    CompletableFuture<Void> met = CompletableFuture.runAsync(() -> meet(first, point), THREADS);
    assertThatThrownBy(() -> stranger.meet(point, "job", 4))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("node 0 of this job did not come within 4 s");
    assertThat(refusals)
        .singleElement()
        .asString()
        .contains("to where nodes meet is refused: it does not know the job's secret");
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
    byte[] hello = ByteBuffer.allocate(44).put("GWPEER01".getBytes()).putInt(1).put(number).array();
    byte[] proof;
    try (Socket socket = new Socket()) {
      socket.connect(mesh.address());
      socket.getOutputStream().write(hello);
      byte[] others = new DataInputStream(socket.getInputStream()).readNBytes(32);
      byte[] nodes = ByteBuffer.allocate(8).putInt(1).putInt(0).array();
      proof = SECRET.proof("connect", number, others, nodes);
    }
    try (Socket socket = new Socket()) {
      socket.connect(mesh.address());
      socket.getOutputStream().write(hello);
      socket.getInputStream().readNBytes(32);
      socket.getOutputStream().write(proof);
      assertThat(socket.getInputStream().read()).as("refused").isEqualTo(-1);
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

  /** A node that has greeted, and then says what it likes. */
  private Socket impostor(Mesh mesh) throws Exception {
    CompletableFuture<Void> joined =
        CompletableFuture.runAsync(
            () -> {
              try {
                mesh.join(List.of(mesh.address(), mesh.address()), 10);
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
            },
            THREADS);
    Socket socket = new Socket();
    socket.connect(mesh.address());
    new Greeting(SECRET, 1, "plan=1\n").connect(socket, 0);
    joined.get();
    return socket;
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

  @Test
  void a_node_that_breaks_off_ends_the_job_for_all_others() throws Exception {
    Mesh first = mesh(3, 3, 0, SECRET, "plan=1\n");
    Mesh second = mesh(3, 3, 1, SECRET, "plan=1\n");
    List<InetSocketAddress> addresses = List.of(first.address(), second.address(), first.address());
    List<CompletableFuture<Void>> joins = new ArrayList<>();
    for (Mesh mesh : List.of(first, second)) {
      joins.add(
          CompletableFuture.runAsync(
              () -> {
                try {
                  mesh.join(addresses, 10);
                } catch (InterruptedException e) {
                  throw new IllegalStateException(e);
                }
              },
              THREADS));
    }
    Socket toFirst = new Socket();
    Socket toSecond = new Socket();
    toFirst.connect(first.address());
    toSecond.connect(second.address());
    new Greeting(SECRET, 2, "plan=1\n").connect(toFirst, 0);
    new Greeting(SECRET, 2, "plan=1\n").connect(toSecond, 1);
    for (CompletableFuture<Void> join : joins) {
      join.get();
    }
    // The second cannot know by itself: its connection stays.
    toFirst.close();
    for (Mesh mesh : List.of(second, first)) {
      int own = mesh == first ? 0 : 1;
      assertThatThrownBy(() -> mesh.office().rank(own).await(2, 0, 0))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("node 2")
          .hasMessageContaining("is lost");
    }
    toSecond.close();
  }

  @Test
  void a_rank_that_cannot_go_on_ends_the_job_for_all_others() throws Exception {
    connect(2, 2);
    meshes.get(0).office().giveUp(Failure.damaged("sample 'a' is damaged"));
    assertThatThrownBy(() -> meshes.get(1).office().rank(1).await(0, 0, 0))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("node 0")
        .hasMessageContaining("sample 'a' is damaged");
  }

  @Test
  void a_node_that_is_silent_is_lost_within_ten_seconds() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    long start = System.nanoTime();
    try (Socket silent = impostor(mesh)) {
      assertThatThrownBy(() -> mesh.office().rank(0).await(1, 0, 0))
          .isInstanceOf(Failure.class)
          .hasMessageContaining("node 1")
          .hasMessageContaining("nothing was heard of it");
      assertThat(silent.isClosed()).isFalse();
    }
    assertThat(System.nanoTime() - start).isBetween(5_000_000_000L, 10_000_000_000L);
  }

  @Test
  void what_a_rank_keeps_is_there_for_those_of_other_nodes() throws Exception {
    kept =
        (rank, sample, tier, target) -> {
          target.asByteBuffer().put(bytes(sample));
          return rank == 1 && tier == Caching.DISK && sample % 3 != 0;
        };
    connect(2, 2);
    PeerCaches caches = meshes.get(0).caches();
    List<CompletableFuture<Void>> asking = new ArrayList<>();
    for (int thread = 0; thread < 8; thread++) {
      asking.add(
          CompletableFuture.runAsync(
              () -> {
                for (long sample = 0; sample < 100; sample++) {
                  byte[] bytes = bytes(sample);
                  byte[] target = new byte[bytes.length];
                  MemorySegment memory = MemorySegment.ofArray(target);
                  assertThat(caches.fetch(1, sample, Caching.MEMORY, memory)).isFalse();
                  boolean isKept = sample % 3 != 0;
                  assertThat(caches.fetch(1, sample, Caching.DISK, memory)).isEqualTo(isKept);
                  if (isKept) {
                    assertThat(target).isEqualTo(bytes);
                  }
                }
              },
              THREADS));
    }
    for (CompletableFuture<Void> each : asking) {
      each.get();
    }
  }

  @Test
  void who_waits_for_a_sample_of_a_node_that_breaks_off_goes_without_it() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    CompletableFuture<Boolean> waiting;
    try (Socket mute = impostor(mesh)) {
      byte[] target = new byte[(int) dataset.snapshot().length(3)];
      waiting =
          CompletableFuture.supplyAsync(
              () -> mesh.caches().fetch(1, 3, Caching.MEMORY, MemorySegment.ofArray(target)),
              THREADS);
      mute.getInputStream().readNBytes(25); // the question, after which nothing is said
    }
    assertThat(waiting.get(3, TimeUnit.SECONDS)).isFalse();
    assertThat(mesh.caches().fetch(1, 3, Caching.MEMORY, MemorySegment.NULL)).isFalse();
  }

  @Test
  void who_waits_for_the_rest_of_a_sample_is_not_kept_by_a_node_that_hangs() throws Exception {
    Mesh mesh = mesh(2, 2, 0, SECRET, "plan=1\n");
    try (Socket slow = impostor(mesh)) {
      byte[] target = new byte[(int) dataset.snapshot().length(3)];
      CompletableFuture<Boolean> waiting =
          CompletableFuture.supplyAsync(
              () -> mesh.caches().fetch(1, 3, Caching.MEMORY, MemorySegment.ofArray(target)),
              THREADS);
      byte[] asked = slow.getInputStream().readNBytes(25);
      ByteBuffer answer = ByteBuffer.allocate(18).order(ByteOrder.LITTLE_ENDIAN).put((byte) 7);
      answer.put(asked, 1, 8).putLong(target.length).put((byte) 1); // of which a byte comes
      slow.getOutputStream().write(answer.array());
      assertThat(waiting.get(10, TimeUnit.SECONDS)).isFalse();
    }
    assertThat(losses).singleElement().asString().contains("nothing was heard of it");
  }

  @Test
  void a_node_that_has_left_is_missed_only_by_who_waits_for_it() throws Exception {
    connect(2, 2);
    push(meshes.get(0).office().rank(0), 1, 0, 1, 2);
    Thread leaving = Thread.ofVirtual().start(meshes.get(0)::close);
    Post other = meshes.get(1).office().rank(1);
    assertHas(other.await(0, 0, 0), 1, 2);
    assertThatThrownBy(() -> other.await(0, 0, 1))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("node 0")
        .hasMessageContaining("has left the job");
    push(other, 0, 0, 7); // which nobody needs
    leaving.join();
    assertThat(losses).isEmpty();
  }
}
