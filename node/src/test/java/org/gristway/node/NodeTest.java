package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A node in this process, and clients at its socket. */
@Tag("java")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NodeTest {

  private static final int BATCHES = 29;

  @TempDir static Path folder;
  private static Packed packed;
  private static List<List<Long>> order;

  @TempDir Path runtime;
  private List<String> memoryBefore = List.of();
  private List<AutoCloseable> opened = new ArrayList<>();

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

  private static void eventually(BooleanSupplier happens) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    while (!happens.getAsBoolean()) {
      assertThat(System.nanoTime()).isLessThan(deadline);
      TimeUnit.MILLISECONDS.sleep(5);
    }
  }

  private Path socket() {
    return runtime.resolve("node.sock");
  }

  /** A node that runs in a thread; the task ends when it does. */
  private FutureTask<Void> start(boolean isNamed) {
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

  private TestClient client() throws IOException {
    TestClient client = new TestClient(socket());
    opened.add(client);
    return client;
  }

  private TestClient attached(String... changes) throws IOException {
    TestClient client = client();
    client.attach(packed.text(changes));
    return client;
  }

  private static void assertFailed(Message reply, Failure.Kind kind, String... named) {
    assertThat(reply.kind()).isEqualTo(Message.FAILED);
    String text = TestClient.text(reply);
    assertThat(text).startsWith(kind.number() + " ").doesNotContain("\n").contains(named);
  }

  @Test
  void a_client_gets_its_batches_where_the_node_has_built_them() throws Exception {
    FutureTask<Void> serving = start(false);
    try (TestClient client = client()) {
      long[] welcome = client.attach(packed.text());
      assertThat(welcome[0]).isEqualTo(ProcessHandle.current().pid());
      assertThat(welcome[1]).isEqualTo(Packed.SAMPLES);
      assertThat(LongStream.of(welcome).skip(3)).containsExactly(0L, 0L, 29L, 29L, 1L);
      for (int step = 0; step < BATCHES; step++) {
        TestClient.Lent lent = client.take(0, step);
        assertThat(client.samples(lent)).isEqualTo(order.get(step));
        client.release(lent);
      }
      assertThat(client.call(TestClient.batch(0, 0, BATCHES)).kind()).isEqualTo(Message.OVER);
    }
    serving.get(10, TimeUnit.SECONDS);
  }

  @Test
  void it_ends_with_its_last_client_and_takes_its_socket_away() throws Exception {
    FutureTask<Void> serving = start(false);
    TestClient first = attached();
    TestClient second = attached();
    first.close();
    assertThatThrownBy(() -> serving.get(200, TimeUnit.MILLISECONDS))
        .isInstanceOf(TimeoutException.class);
    assertThat(second.samples(second.take(0, 0))).isEqualTo(order.getFirst());
    second.close();
    serving.get(10, TimeUnit.SECONDS);
    assertThat(socket()).doesNotExist();
    assertThatThrownBy(this::client).isInstanceOf(IOException.class);
  }

  @Test
  void a_named_one_goes_on_and_the_next_job_may_want_something_else() throws Exception {
    FutureTask<Void> serving = start(true);
    for (int seed = 0; seed < 3; seed++) {
      try (TestClient client = attached("seed=" + seed)) {
        assertThat(client.samples(client.take(0, 0))).hasSize(7);
      }
      eventually(() -> Packed.memoryFiles().equals(memoryBefore)); // all is given back
    }
    assertThat(serving.isDone()).isFalse();
  }

  @Test
  void what_a_client_had_that_is_gone_is_given_back() throws Exception {
    start(false);
    try (TestClient healthy = attached()) {
      // Each takes more than there would be for all of them together.
      for (int i = 0; i < 20; i++) {
        try (TestClient killed = attached()) {
          killed.take(0, 0);
          killed.take(0, 1);
        }
      }
      for (int step = 0; step < BATCHES; step++) {
        TestClient.Lent lent = healthy.take(0, step);
        assertThat(healthy.samples(lent)).isEqualTo(order.get(step));
        healthy.release(lent);
      }
    }
  }

  @Test
  void one_that_is_gone_in_the_middle_of_a_request_is_no_harm() throws Exception {
    start(false);
    try (TestClient healthy = attached()) {
      for (int i = 0; i < 20; i++) {
        TestClient killed = attached();
        killed.send(TestClient.batch(0, i % 3, i));
        killed.close();
      }
      assertThat(healthy.samples(healthy.take(0, 3))).isEqualTo(order.get(3));
    }
  }

  /** Views outlive their loader, so what it still uses must not be built in again. */
  @Test
  void what_a_client_still_uses_when_it_says_bye_stays_as_it_is() throws Exception {
    start(false);
    try (TestClient other = attached()) {
      TestClient leaving = attached();
      TestClient.Lent kept = leaving.take(0, 0);
      leaving.send(Message.of(Message.BYE));
      leaving.close();
      for (int epoch = 0; epoch < 2; epoch++) {
        for (int step = 0; step < BATCHES; step++) {
          other.release(other.take(epoch, step));
        }
      }
      assertThat(other.samples(kept)).isEqualTo(order.getFirst());
    }
  }

  @Test
  void one_that_says_bye_is_heard_also_when_it_does_not_wait_for_its_last_reply() throws Exception {
    start(false);
    try (TestClient other = attached()) {
      for (int i = 0; i < 20; i++) {
        TestClient leaving = attached();
        TestClient.Lent kept = leaving.take(0, i % BATCHES);
        List<Long> content = leaving.samples(kept);
        leaving.send(TestClient.batch(0, 0, (i + 1) % BATCHES));
        leaving.send(Message.of(Message.BYE));
        leaving.close();
        for (int step = 0; step < BATCHES; step++) {
          other.release(other.take(1, step));
        }
        assertThat(other.samples(kept)).isEqualTo(content);
      }
    }
  }

  @Test
  void one_that_wants_something_else_is_told_what() throws Exception {
    start(false);
    try (TestClient first = attached();
        TestClient second = client()) {
      assertFailed(
          second.call(TestClient.hello(packed.text("seed=4"), 0, 1)),
          Failure.Kind.WRONG_CALL,
          "seed=3, not 4");
      second.attach(packed.text()); // and may think again
      assertThat(second.samples(second.take(0, 1))).isEqualTo(order.get(1));
      assertThat(first.samples(first.take(0, 1))).isEqualTo(order.get(1));
    }
  }

  @Test
  void one_of_another_version_or_protocol_is_told_both() throws Exception {
    start(false);
    try (TestClient client = client()) {
      Message version =
          Message.of(Message.HELLO).putInt(Message.PROTOCOL).putText("1.2.4").putInt(0).putInt(1);
      assertFailed(client.call(version), Failure.Kind.WRONG_CALL, "1.2.3", "1.2.4");
      Message protocol =
          Message.of(Message.HELLO).putInt(99).putText(TestClient.VERSION).putInt(0).putInt(1);
      assertFailed(client.call(protocol), Failure.Kind.WRONG_CALL, "protocol 99");
    }
  }

  @Test
  void what_cannot_be_opened_is_told_and_the_node_ends_when_the_client_goes() throws Exception {
    FutureTask<Void> serving = start(false);
    try (TestClient client = client()) {
      for (int attempt = 0; attempt < 2; attempt++) {
        assertFailed(
            client.call(TestClient.hello(packed.text("path=/nowhere/at/all"), 0, 1)),
            Failure.Kind.WRONG_CALL,
            "/nowhere/at/all");
      }
      assertFailed(
          client.call(TestClient.hello(packed.text("policy=guess"), 0, 1)),
          Failure.Kind.WRONG_CALL,
          "guess");
    }
    serving.get(10, TimeUnit.SECONDS);
  }

  @Test
  void what_makes_no_sense_is_told_and_the_connection_goes_on() throws Exception {
    start(false);
    try (TestClient client = client()) {
      assertFailed(
          client.call(TestClient.batch(0, 0, 0)), Failure.Kind.DAMAGED, "before it has said");
      assertFailed(client.call(Message.of(99)), Failure.Kind.DAMAGED, "kind 99");
      assertFailed(client.call(Message.of(0)), Failure.Kind.DAMAGED, "kind 0");
      assertFailed(client.call(Message.of(Message.HELLO)), Failure.Kind.DAMAGED, "shorter");
      assertFailed(
          client.call(TestClient.hello(packed.text(), 1, 1)),
          Failure.Kind.WRONG_CALL,
          "no rank 1 of 1");
      client.attach(packed.text());
      assertFailed(
          client.call(Message.of(Message.BATCH).putInt(0)), Failure.Kind.DAMAGED, "shorter");
      assertFailed(
          client.call(Message.of(Message.DESCRIBE).putInt(1).putLong(Packed.SAMPLES)),
          Failure.Kind.WRONG_CALL,
          "no sample 203");
      assertFailed(
          client.call(Message.of(Message.DESCRIBE).putInt(1 << 30)),
          Failure.Kind.DAMAGED,
          "numbers follow");
      client.send(Message.of(Message.RELEASE).putLong(12345)); // of nothing
      TestClient.Lent lent = client.take(0, 0);
      client.release(lent);
      client.release(lent);
      assertThat(client.samples(client.take(0, 1))).isEqualTo(order.get(1));
    }
  }

  @Test
  void steps_and_epochs_that_cannot_be_are_refused() throws Exception {
    start(false);
    try (TestClient client = attached()) {
      for (long epoch : new long[] {-1, Long.MIN_VALUE, Long.MAX_VALUE, 1L << 40}) {
        Message reply = client.call(TestClient.batch(0, epoch, 0));
        if (reply.kind() == Message.PIECES) {
          assertThat(epoch).isEqualTo(1L << 40); // there are so many
        } else {
          assertFailed(reply, Failure.Kind.WRONG_CALL, "there");
        }
      }
      for (long step : new long[] {-2, Long.MIN_VALUE}) {
        assertFailed(client.call(TestClient.batch(0, 0, step)), Failure.Kind.WRONG_CALL, "step");
      }
      assertThat(client.call(TestClient.batch(0, 0, Long.MAX_VALUE)).kind())
          .isEqualTo(Message.OVER);
      assertThat(client.samples(client.take(0, 1))).isEqualTo(order.get(1));
    }
  }

  @Test
  void a_client_is_of_one_rank() throws Exception {
    start(false);
    String two = packed.text("ranks=2", "ranks-here=2");
    try (TestClient first = client();
        TestClient second = client()) {
      first.attach(two, 0);
      second.attach(two, 1);
      assertFailed(first.call(TestClient.batch(1, 0, 0)), Failure.Kind.DAMAGED, "two ranks");
      List<Long> both = new ArrayList<>(first.samples(first.take(0, 0)));
      both.addAll(
          second.samples(TestClient.pieces(second.call(TestClient.batch(1, 0, 0))).getFirst()));
      assertThat(both).doesNotHaveDuplicates().hasSize(14);
    }
  }

  @Test
  void bytes_of_any_kind_harm_nobody_else() throws Exception {
    Random random = new Random(Seeds.of("bytes_of_any_kind_harm_nobody_else"));
    FutureTask<Void> serving = start(false);
    try (TestClient healthy = attached()) {
      for (int i = 0; i < Thorough.count(60, 3000); i++) {
        try (TestClient stranger = client()) {
          byte[] bytes = new byte[random.nextInt(200)];
          random.nextBytes(bytes);
          if (bytes.length > 5 && random.nextBoolean()) {
            // A message of a known kind, with a body that is none.
            bytes[0] = (byte) Math.min(127, bytes.length - 4);
            bytes[1] = bytes[2] = bytes[3] = 0;
            bytes[4] = (byte) (1 + random.nextInt(8));
          }
          stranger.raw(bytes);
        }
        if (i % 10 == 0) {
          int step = i / 10 % BATCHES;
          TestClient.Lent lent = healthy.take(0, step);
          assertThat(healthy.samples(lent)).isEqualTo(order.get(step));
          healthy.release(lent);
        }
      }
    }
    serving.get(10, TimeUnit.SECONDS);
  }

  /** Random requests of a client that is attached, as a bug in it might make them. */
  @Test
  void requests_of_any_kind_are_answered_or_refused() throws Exception {
    Random random = new Random(Seeds.of("requests_of_any_kind_are_answered_or_refused"));
    start(false);
    try (TestClient healthy = attached()) {
      for (int i = 0; i < Thorough.count(40, 2000); i++) {
        try (TestClient client = attached()) {
          for (int request = 0; request < 5; request++) {
            Message message = Message.of(2 + random.nextInt(6));
            for (int field = random.nextInt(8); field > 0; field--) {
              message.putInt(random.nextInt(4) == 0 ? random.nextInt() : random.nextInt(3));
            }
            int kind = message.kind();
            client.send(message);
            if (kind != Message.RELEASE) {
              assertThat(client.receive().kind()).isBetween(Message.PIECES, Message.FAILED);
            }
          }
        }
      }
      assertThat(healthy.samples(healthy.take(0, 3))).isEqualTo(order.get(3));
    }
  }

  @Test
  void asked_exactly_it_gives_what_is_named() throws Exception {
    start(false);
    try (TestClient client = attached("mode=exact", "batch=1")) {
      for (long[] indices :
          new long[][] {{5}, {7, 7, 202, 0}, LongStream.range(0, 203).toArray()}) {
        TestClient.Lent lent = TestClient.pieces(client.call(ask(indices))).getFirst();
        assertThat(client.samples(lent)).isEqualTo(LongStream.of(indices).boxed().toList());
        client.release(lent);
      }
      assertFailed(client.call(ask(203)), Failure.Kind.WRONG_CALL, "203");
      assertFailed(client.call(ask(-1)), Failure.Kind.WRONG_CALL, "-1");
      assertFailed(client.call(ask()), Failure.Kind.WRONG_CALL, "at least one");
    }
  }

  private static Message ask(long... indices) {
    Message ask = Message.of(Message.ASK).putInt(0).putLong(0).putLong(1).putLong(0);
    ask.putInt(Math.max(1, indices.length)).putInt(1).putInt(indices.length);
    LongStream.of(indices).forEach(ask::putLong);
    return ask;
  }

  @Test
  void keys_and_parts_are_told() throws Exception {
    start(false);
    try (TestClient client = attached();
        Dataset dataset = Dataset.open(packed.path())) {
      Message described =
          client.call(Message.of(Message.DESCRIBE).putInt(2).putLong(0).putLong(202));
      assertThat(described.kind()).isEqualTo(Message.DESCRIPTION);
      for (long sample : new long[] {0, 202}) {
        assertThat(described.getText()).isEqualTo(dataset.snapshot().key(sample));
        assertThat(described.getInt()).isEqualTo(1);
        assertThat(described.getText()).isNotNull();
        assertThat(described.getLong()).isEqualTo(dataset.snapshot().location(sample).length());
      }
      assertThat(described.getRest()).isEmpty();
    }
  }

  @Test
  void damage_is_told_once_to_somebody_who_asks(@TempDir Path other) throws Exception {
    Packed damaged = Packed.in(other);
    damaged.damage();
    start(false);
    try (TestClient reader = client();
        TestClient side = client()) {
      reader.attach(damaged.text());
      side.attach(damaged.text());
      for (int step = 0; step < BATCHES; step++) {
        reader.release(reader.take(0, step));
      }
      side.call(Message.of(Message.STATS));
      reader.call(Message.of(Message.STATS));
      List<String> told = new ArrayList<>(reader.notices());
      told.addAll(side.notices());
      // And perhaps for the next epoch, which is being read.
      assertThat(told).hasSizeBetween(1, 2).allMatch(line -> line.contains("is damaged"));
    }
  }

  @Test
  void states_and_counters_are_told() throws Exception {
    start(false);
    try (TestClient client = attached()) {
      client.release(client.take(0, 0));
      String stats = TestClient.text(client.call(Message.of(Message.STATS)));
      assertThat(stats.lines()).allMatch(line -> line.matches("[a-z-]+=\\d+"));
      assertThat(stats).contains("batches=1\n", "samples=7\n");
      Message state = Message.of(Message.STATE).putInt(0).putLong(2).putLong(5);
      assertThat(TestClient.text(client.call(state))).contains("epoch 2");
    }
  }

  @Test
  void closing_it_ends_all_connections_without_a_wrong_word() throws Exception {
    Node node = Node.named(socket(), TestClient.VERSION);
    opened.add(node);
    Thread.ofPlatform()
        .daemon()
        .start(
            () -> {
              try {
                node.serve();
              } catch (InterruptedException never) {
                throw new AssertionError(never);
              }
            });
    TestClient client = attached("batch=1");
    FutureTask<Throwable> reading =
        new FutureTask<>(
            () ->
                catchThrowable(
                    () -> {
                      for (long step = 0; ; step++) {
                        client.release(client.take(step / 203, step % 203));
                      }
                    }));
    Thread.ofPlatform().daemon().start(reading);
    TimeUnit.MILLISECONDS.sleep(100);
    node.close();
    // The client must see that its node is gone, and not be told of a mistake of its own.
    assertThat(reading.get(10, TimeUnit.SECONDS)).isInstanceOf(IOException.class);
    assertThat(socket()).doesNotExist();
  }

  @Test
  void two_cannot_listen_in_one_place() throws Exception {
    start(true);
    assertThatThrownBy(() -> Node.forJob(socket(), TestClient.VERSION))
        .isInstanceOf(Failure.class)
        .hasMessageContaining(socket().toString());
    assertThatThrownBy(() -> Node.named(socket(), TestClient.VERSION))
        .isInstanceOf(Failure.class)
        .hasMessageContaining("has this name already");
    assertThat(socket()).exists();
    try (TestClient client = attached()) {
      assertThat(client.samples(client.take(0, 0))).isEqualTo(order.getFirst());
    }
  }

  @Test
  void what_a_killed_one_has_left_is_removed_by_one_of_the_same_name() throws Exception {
    Files.createFile(socket());
    start(true);
    try (TestClient client = attached()) {
      assertThat(client.samples(client.take(0, 0))).isEqualTo(order.getFirst());
    }
  }

  @Test
  void many_clients_may_come_and_go_at_once() throws Exception {
    FutureTask<Void> serving = start(false);
    TestClient last = attached();
    List<FutureTask<Void>> tasks = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      int own = i;
      FutureTask<Void> task =
          new FutureTask<>(
              () -> {
                try (TestClient client = new TestClient(socket())) {
                  client.attach(packed.text());
                  int step = own % BATCHES;
                  TestClient.Lent lent = client.take(0, step);
                  assertThat(client.samples(lent)).isEqualTo(order.get(step));
                }
                return null;
              });
      tasks.add(task);
      Thread.ofPlatform().daemon().start(task);
    }
    for (FutureTask<Void> task : tasks) {
      task.get();
    }
    last.close();
    serving.get(10, TimeUnit.SECONDS);
  }
}
