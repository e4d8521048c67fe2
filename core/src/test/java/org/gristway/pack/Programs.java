package org.gristway.pack;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;

/** Runs the system's own programs, for what Java cannot make. */
public final class Programs {

  private Programs() {}

  /** Runs a program in a folder; returns what it printed. It must succeed. */
  public static String run(Path folder, String... command) {
    try {
      Process process =
          new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true).start();
      process.getOutputStream().close();
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (process.waitFor() != 0) {
        throw new IllegalStateException(List.of(command) + " failed: " + output);
      }
      return output;
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    } catch (InterruptedException stop) {
      throw new IllegalStateException(stop);
    }
  }

  /** Runs a line of shell, for names that are not text. */
  public static String sh(Path folder, String line) {
    return run(folder, "sh", "-c", line);
  }
}
