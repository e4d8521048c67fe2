package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.gristway.cli.Cli;

/** Other programs. */
final class Commands {

  private Commands() {}

  /** Returns what it printed; empty if that is nothing. */
  static String run(String... command) {
    Output output = call(command);
    assertThat(output.exit).as(output.text).isZero();
    return output.text;
  }

  /** How a program ended, and what it printed. */
  record Output(int exit, String text) {}

  static Output call(String... command) {
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      process.getOutputStream().close();
      String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      return new Output(Cli.await(process), text);
    } catch (IOException failed) {
      throw new AssertionError(failed);
    }
  }
}
