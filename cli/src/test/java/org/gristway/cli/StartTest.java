package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("java")
class StartTest {

  @Test
  void tellsItsVersionInOneLine() {
    assertThat(new Cli().call("--version").isDone().outText())
        .matches("gristway \\d+\\.\\d+\\.\\d+ \\(Java \\d+[^\\n]*\\)\\n");
  }

  /** Scripts ask for the version to see whether Gristway is there; that must cost nothing. */
  @Test
  void loadsNextToNothingForTheVersion() {
    String loaded = new Cli().java("-Xlog:class+load").call("--version").isDone().outText();
    assertThat(loaded)
        .contains("org.gristway.cli.Main")
        .doesNotContain("org.gristway.dataset", "org.gristway.os", "org.gristway.pack")
        .doesNotContain("picocli", "tools.jackson", "java.lang.foreign");
  }

  @Test
  void listsItsCommands() {
    assertThat(new Cli().call("--help").isDone().outText())
        .contains(
            "pack",
            "append",
            "verify",
            "rebuild",
            "info",
            "ls",
            "cat",
            "unpack",
            "place",
            "read",
            "plan",
            "simulate",
            "probe",
            "stat",
            "demo")
        .contains("Exit codes", "--debug");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "pack",
        "append",
        "verify",
        "rebuild",
        "info",
        "ls",
        "cat",
        "unpack",
        "place",
        "read",
        "plan",
        "simulate",
        "probe",
        "stat",
        "demo"
      })
  void helpsWithEveryCommand(String command) {
    assertThat(Cli.run(command, "--help").isDone().outText())
        .startsWith("Usage: gristway " + command)
        .contains("Example: gristway " + command);
  }
}
