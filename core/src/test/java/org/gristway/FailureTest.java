package org.gristway;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class FailureTest {

  @Test
  void a_message_is_one_line_whatever_names_it_holds() {
    assertThat(Failure.damaged("'%s' is bad", "a\nb\tc\r\u0000d\u0085é"))
        .hasMessage("'a\\nb\\tc\\x0d\\x00d\\x85é' is bad");
  }

  @Test
  void a_message_without_arguments_may_hold_percent_signs() {
    assertThat(Failure.wrongCall("100% wrong")).hasMessage("100% wrong");
  }

  @Test
  void kinds_have_the_numbers_that_commands_end_with() {
    assertThat(Failure.damaged("x").kind().number()).isEqualTo(1);
    assertThat(Failure.wrongCall("x").kind().number()).isEqualTo(2);
    assertThat(Failure.environment("x").kind().number()).isEqualTo(3);
  }

  @Test
  void io_errors_say_what_to_do() {
    assertThat(Failure.io("write x", new IOException("No space left on device")))
        .hasMessageStartingWith("cannot write x: No space left on device; free some space");
    assertThat(Failure.io("read x", new AccessDeniedException("/x")))
        .hasMessageContaining("permission denied; check who owns it");
    assertThat(Failure.io("read x", new NoSuchFileException("/x")))
        .hasMessage("cannot read x: no such file or folder");
    assertThat(Failure.io("read x", new FileSystemException("/x", null, "Is a directory")))
        .hasMessage("cannot read x: Is a directory");
    assertThat(Failure.io("read x", new IOException())).hasMessage("cannot read x: IOException");
    assertThat(Failure.io("read x", new IOException("y")).kind())
        .isEqualTo(Failure.Kind.ENVIRONMENT);
  }
}
