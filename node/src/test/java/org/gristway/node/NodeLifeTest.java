package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.gristway.Failure;
import org.junit.jupiter.api.Test;

/** When a node begins and ends, and what is left of it and of its clients. */
class NodeLifeTest extends NodeTesting {

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
}
