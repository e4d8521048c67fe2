package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.node.Packed;
import org.gristway.plan.World;
import org.gristway.read.Parcel;
import org.gristway.read.PeerCaches;
import org.gristway.read.Post;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Nodes of one process that are connected over loopback. */
@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
abstract class MeshTesting {

  static final JobSecret SECRET = JobSecret.of("a secret of this test");
  static final int WINDOW = 2;
  static final int BATCH = 40;

  /** Not the common pool, which may have one thread for all who wait for each other. */
  static final Executor THREADS = task -> Thread.ofVirtual().start(task);

  @TempDir static Path folder;
  static Dataset dataset;

  final List<Mesh> meshes = new ArrayList<>();
  final List<Failure> losses = Collections.synchronizedList(new ArrayList<>());
  volatile PeerCaches kept = PeerCaches.NONE; // by all
  final List<String> refusals = Collections.synchronizedList(new ArrayList<>());

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

  Mesh mesh(int ranks, int nodes, int node, JobSecret secret, String intent) {
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

  boolean keep(int rank, long sample, int tier, MemorySegment target) {
    return kept.fetch(rank, sample, tier, target);
  }

  List<InetSocketAddress> addresses() {
    return meshes.stream().map(Mesh::address).toList();
  }

  void joinAll() throws ExecutionException, InterruptedException {
    List<CompletableFuture<Void>> joins = new ArrayList<>();
    for (Mesh mesh : meshes) {
      joins.add(CompletableFuture.runAsync(() -> join(mesh), THREADS));
    }
    for (CompletableFuture<Void> each : joins) {
      each.get();
    }
  }

  void join(Mesh mesh) {
    try {
      mesh.join(addresses(), 10);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  void connect(int ranks, int nodes) throws ExecutionException, InterruptedException {
    for (int node = 0; node < nodes; node++) {
      mesh(ranks, nodes, node, SECRET, "plan=1\n");
    }
    joinAll();
  }

  static byte[] bytes(long sample) {
    byte[] bytes = new byte[(int) dataset.snapshot().length(sample)];
    new Random(sample).nextBytes(bytes);
    return bytes;
  }

  static void push(Post post, int to, long step, long... samples) throws InterruptedException {
    Parcel parcel = post.begin(to, 0, step);
    for (int i = 0; i < samples.length; i++) {
      byte[] bytes = bytes(samples[i]);
      parcel.add(i, samples[i], bytes.length).asByteBuffer().put(bytes);
    }
    post.send(parcel);
  }

  static void assertHas(Parcel parcel, long... samples) {
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

  /** A node that has greeted, and then says what it likes. */
  Socket impostor(Mesh mesh) throws Exception {
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
    new Greeting(SECRET, 1, "plan=1\n").connect(socket, 0, () -> {});
    joined.get();
    return socket;
  }
}
