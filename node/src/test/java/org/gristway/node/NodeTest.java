package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What clients get of their node. */
class NodeTest extends NodeTesting {

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
  void one_that_leaves_with_all_batches_leaves_others_as_many_as_they_need() throws Exception {
    start(false);
    try (TestClient other = attached()) {
      TestClient leaving = attached();
      int step = takeAll(leaving);
      assertThat(step).isBetween(4, BATCHES - 1);
      leaving.send(Message.of(Message.BYE));
      leaving.close();
      for (int next = step; next < BATCHES; next++) {
        TestClient.Lent lent = other.take(0, next);
        assertThat(other.samples(lent)).isEqualTo(order.get(next));
        other.release(lent);
      }
    }
  }

  @Test
  void what_leaves_with_a_client_is_no_reason_to_wait_for_ever() throws Exception {
    start(false);
    try (TestClient other = attached("handover=65536")) {
      TestClient leaving = attached("handover=65536");
      int step = takeAll(leaving);
      assertThat(step).isBetween(2, BATCHES - 1);
      leaving.send(Message.of(Message.BYE));
      leaving.close();
      Message reply = other.call(TestClient.batch(0, 0, step));
      assertThat(reply.kind()).isEqualTo(Message.FULL);
      assertThat(TestClient.text(reply)).contains("handover=", step + " batches");
    }
  }

  /** Takes batches until there are no more at once, and returns how many there were. */
  private static int takeAll(TestClient client) throws IOException {
    int step = 0;
    while (client.call(TestClient.batch(0, 0, step)).kind() == Message.PIECES) {
      step++;
    }
    return step;
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

  @Test
  void a_request_that_there_is_no_memory_for_leaves_nothing_open() throws Exception {
    FutureTask<Void> serving = start(false);
    long before = mappings();
    try (TestClient client = attached("mode=exact", "batch=1", "handover=" + (1L << 50))) {
      for (int i = 0; i < 3; i++) {
        assertFailed(client.call(ask(5)), Failure.Kind.ENVIRONMENT, "memory");
      }
    }
    serving.get(10, TimeUnit.SECONDS);
    eventually(() -> mappings() == before);
  }

  private static long mappings() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.filter(line -> line.contains(packed.path() + "/")).count();
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
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
