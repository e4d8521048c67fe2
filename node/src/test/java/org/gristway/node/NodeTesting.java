package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.gristway.Failure;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A node in this process, and clients at its socket. */
@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
abstract class NodeTesting {

  static final int BATCHES = 29;

  @TempDir static Path folder;
  static Packed packed;
  static List<List<Long>> order;

  @TempDir Path runtime;
  List<String> memoryBefore = List.of();
  List<AutoCloseable> opened = new ArrayList<>();

  @BeforeAll
  static void pack() {
    packed = Packed.in(folder);
    order = packed.order(packed.settings(), 0, 1).getFirst();
  }

  @BeforeEach
  void look() {
    memoryBefore = Packed.memoryFiles();
    opened = new ArrayList<>();
  }

  @AfterEach
  void nothing_is_left() throws Exception {
    for (AutoCloseable each : opened.reversed()) {
      each.close();
    }
    eventually(() -> Packed.memoryFiles().equals(memoryBefore));
    assertThat(runtime).isEmptyDirectory();
  }

  static void eventually(BooleanSupplier happens) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    while (!happens.getAsBoolean()) {
      assertThat(System.nanoTime()).isLessThan(deadline);
      TimeUnit.MILLISECONDS.sleep(5);
    }
  }

  Path socket() {
    return runtime.resolve("node.sock");
  }

  /** A node that runs in a thread; the task ends when it does. */
  FutureTask<Void> start(boolean isNamed) {
    Node node =
        isNamed
            ? Node.named(socket(), TestClient.VERSION)
            : Node.forJob(socket(), TestClient.VERSION);
    opened.add(node);
    FutureTask<Void> serving =
        new FutureTask<>(
            () -> {
              try (node) {
                node.serve();
              }
              return null;
            });
    Thread.ofPlatform().daemon().start(serving);
    return serving;
  }

  TestClient client() throws IOException {
    TestClient client = new TestClient(socket());
    opened.add(client);
    return client;
  }

  TestClient attached(String... changes) throws IOException {
    TestClient client = client();
    client.attach(packed.text(changes));
    return client;
  }

  static void assertFailed(Message reply, Failure.Kind kind, String... named) {
    assertThat(reply.kind()).isEqualTo(Message.FAILED);
    String text = TestClient.text(reply);
    assertThat(text).startsWith(kind.number() + " ").doesNotContain("\n").contains(named);
  }
}
