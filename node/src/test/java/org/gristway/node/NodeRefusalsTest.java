package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.gristway.Failure;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a node refuses, and that nobody else suffers from it. */
class NodeRefusalsTest extends NodeTesting {

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
  void one_that_expects_another_snapshot_is_told_that_the_dataset_was_replaced() throws Exception {
    start(false);
    String other = "0123456789abcdef0123456789abcdef";
    try (TestClient first = client();
        TestClient second = client()) {
      assertFailed(
          first.call(TestClient.hello(packed.text(), 0, 1, 1, other)),
          Failure.Kind.WRONG_CALL,
          "was replaced",
          other);
      first.attach(packed.text());
      assertFailed(
          second.call(TestClient.hello(packed.text(), 0, 1, 1, other)),
          Failure.Kind.WRONG_CALL,
          "was replaced",
          other);
      assertFailed(
          second.call(TestClient.hello(packed.text(), 0, 1, 2, "")),
          Failure.Kind.WRONG_CALL,
          "reads version 1");
      second.attach(packed.text());
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
  void whoever_connects_is_answered_while_a_dataset_is_being_opened(@TempDir Path slow)
      throws Exception {
    Path snapshot = Files.createDirectory(slow.resolve("slow.gw")).resolve("snapshot-000001.gws");
    assertThat(new ProcessBuilder("mkfifo", snapshot.toString()).start().waitFor()).isZero();
    start(false);
    try (TestClient opening = client();
        TestClient asking = client()) {
      opening.send(TestClient.hello(packed.text("path=" + snapshot.getParent()), 0, 1));
      TimeUnit.MILLISECONDS.sleep(200);
      try (TestClient later = client()) {
        assertFailed(asking.call(Message.of(Message.STATS)), Failure.Kind.DAMAGED, "before it has");
        assertFailed(later.call(Message.of(Message.STATS)), Failure.Kind.DAMAGED, "before it has");
      } finally {
        Files.newOutputStream(snapshot).close(); // for which opening has waited
      }
      assertFailed(opening.receive(), Failure.Kind.DAMAGED, "too few for a snapshot");
    }
  }
}
