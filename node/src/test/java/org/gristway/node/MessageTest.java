package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.util.Arrays;
import java.util.Random;
import org.gristway.Failure;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("java")
class MessageTest {

  private static byte[] written(Message message) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    message.write(Channels.newChannel(out));
    return out.toByteArray();
  }

  private static Message read(byte[] bytes) throws IOException {
    return Message.read(Channels.newChannel(new ByteArrayInputStream(bytes)));
  }

  /** A message with this body. */
  private static Message of(byte[] body) throws IOException {
    ByteBuffer whole = ByteBuffer.allocate(5 + body.length).order(ByteOrder.LITTLE_ENDIAN);
    return read(whole.putInt(body.length + 1).put((byte) 9).put(body).array());
  }

  @Test
  void what_is_put_is_got() throws IOException {
    Message read =
        read(
            written(
                Message.of(Message.ASK)
                    .putInt(-7)
                    .putLong(1L << 40)
                    .putText("Größe 日本 \n😀")
                    .putText("")
                    .putInt(3)
                    .putLong(1)
                    .putLong(-1)
                    .putLong(Long.MAX_VALUE)
                    .putRest("the rest")));
    assertThat(read.kind()).isEqualTo(Message.ASK);
    assertThat(read.getInt()).isEqualTo(-7);
    assertThat(read.getLong()).isEqualTo(1L << 40);
    assertThat(read.getText()).isEqualTo("Größe 日本 \n😀");
    assertThat(read.getText()).isEmpty();
    assertThat(read.getLongs()).containsExactly(1, -1, Long.MAX_VALUE);
    assertThat(read.getRest()).isEqualTo(Packed.utf8("the rest"));
    assertThat(read.getRest()).isEmpty();
  }

  /** The Python client writes and reads the same bytes. */
  @Test
  void its_bytes_are_these() throws IOException {
    byte[] bytes = written(Message.of(Message.FAILED).putByte(2).putInt(258).putText("é"));
    assertThat(bytes)
        .containsExactly(12, 0, 0, 0, 21, 2, 2, 1, 0, 0, 2, 0, 0, 0, (byte) 0xc3, (byte) 0xa9);
  }

  @Test
  void a_message_may_be_large_and_come_in_pieces() throws IOException {
    String text = "0123456789".repeat(100_000);
    byte[] bytes = written(Message.of(Message.TEXT).putRest(text));
    InputStream slow =
        new ByteArrayInputStream(bytes) {
          @Override
          public synchronized int read(byte[] into, int offset, int length) {
            return super.read(into, offset, Math.min(length, 777));
          }
        };
    assertThat(Message.read(Channels.newChannel(slow)).getRest()).isEqualTo(Packed.utf8(text));
  }

  @Test
  void one_that_ends_early_is_the_end() throws IOException {
    byte[] whole = written(Message.of(Message.BATCH).putInt(1).putLong(2));
    for (int length = 0; length < whole.length; length++) {
      byte[] part = Arrays.copyOf(whole, length);
      assertThatThrownBy(() -> read(part)).isInstanceOf(EOFException.class);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, -1, Integer.MIN_VALUE, Integer.MAX_VALUE, (256 << 20) + 2})
  void after_a_length_that_cannot_be_there_is_nothing_to_be_said(int length) {
    byte[] head = ByteBuffer.allocate(5).order(ByteOrder.LITTLE_ENDIAN).putInt(length).array();
    assertThatThrownBy(() -> read(head))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("the other side is no client");
  }

  @Test
  void a_body_that_is_shorter_than_it_says_is_noticed() throws IOException {
    Message negative = of(new byte[] {-1, -1, -1, -1, 5, 5, 5, 5});
    assertThatThrownBy(negative::getBytes).isInstanceOf(Failure.class);
    Message tooLong = of(new byte[] {5, 0, 0, 0, 1, 2, 3, 4});
    assertThatThrownBy(tooLong::getText).isInstanceOf(Failure.class);
    Message manyNumbers = of(new byte[] {0, 0, 0, 127, 1, 2, 3, 4, 5, 6, 7, 8});
    assertThatThrownBy(manyNumbers::getLongs).isInstanceOf(Failure.class);
    Message negativeNumbers = of(new byte[] {0, 0, 0, -128, 1, 2, 3, 4, 5, 6, 7, 8});
    assertThatThrownBy(negativeNumbers::getLongs).isInstanceOf(Failure.class);
    Message empty = of(new byte[3]);
    assertThatThrownBy(empty::getInt).isInstanceOf(BufferUnderflowException.class);
    Message seven = of(new byte[7]);
    assertThatThrownBy(seven::getLong).isInstanceOf(BufferUnderflowException.class);
  }

  /** Whatever comes, reading it ends in one of the ways that a connection knows. */
  @Test
  void no_bytes_do_harm() throws IOException {
    Random random = new Random(Seeds.of("no_bytes_do_harm"));
    for (int i = 0; i < Thorough.count(20_000, 2_000_000); i++) {
      byte[] body = new byte[random.nextInt(40)];
      random.nextBytes(body);
      for (int small = random.nextInt(body.length + 1); small > 0; small--) {
        body[random.nextInt(body.length)] = (byte) random.nextInt(9); // lengths that may be right
      }
      Message message = of(body);
      Throwable thrown = null;
      while (thrown == null) {
        thrown =
            catchThrowable(
                () -> {
                  switch (random.nextInt(5)) {
                    case 0 -> message.getInt();
                    case 1 -> message.getLong();
                    case 2 -> message.getText();
                    case 3 -> message.getLongs();
                    default -> {
                      if (message.getRest().length == 0) {
                        throw new BufferUnderflowException();
                      }
                    }
                  }
                });
      }
      assertThat(thrown).isInstanceOfAny(Failure.class, BufferUnderflowException.class);
    }
  }
}
