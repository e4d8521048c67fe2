package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.Failure;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class OutcomeTest {

  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final Outcome outcome =
      new Outcome(new Console(OutputStream.nullOutputStream(), err), new String[] {"ls", "x"});

  private String told() {
    return err.toString(StandardCharsets.UTF_8);
  }

  @Test
  void writesTheTraceOfABugToALog() throws IOException {
    assertThat(outcome.of(new IllegalStateException("never\nso"))).isEqualTo(70);
    assertThat(told()).startsWith("gristway: a bug in gristway: ").hasLineCount(1);
    Path log = Path.of(told().strip().replaceAll(".* the log ", ""));
    assertThat(Files.readString(log)).contains("OutcomeTest", "[ls, x]", "\tat ");
    Files.delete(log);
  }

  @Test
  void takesACutOffFileForDamage() {
    InternalError fault =
        new InternalError(
            "a fault occurred in a recent unsafe memory access operation in compiled Java code");
    assertThat(outcome.of(fault)).isEqualTo(1);
    assertThat(told()).contains("gristway verify").hasLineCount(1);
  }

  @Test
  void namesTheSettingForMoreMemory() {
    assertThat(outcome.of(new OutOfMemoryError("Java heap space"))).isEqualTo(3);
    assertThat(told()).contains("GRISTWAY_JAVA_OPTS=-Xmx").hasLineCount(1);
  }

  @Test
  void findsTheFailureInsideAClassThatCannotStart() {
    Failure failure = Failure.environment("no such call in this C library");
    assertThat(outcome.of(new ExceptionInInitializerError(failure))).isEqualTo(3);
    assertThat(told()).isEqualTo("gristway: no such call in this C library\n");
  }

  @Test
  void findsTheReasonInsideAnUncheckedException() {
    IOException cause = new AccessDeniedException("/secret");
    assertThat(outcome.of(new UncheckedIOException(cause))).isEqualTo(3);
    assertThat(told()).isEqualTo("gristway: permission denied\n");
  }

  @Test
  void saysNothingOfAClosedPipe() {
    assertThat(outcome.of(new OutputException(new IOException("Broken pipe")))).isZero();
    assertThat(told()).isEmpty();
  }
}
