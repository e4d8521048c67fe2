package org.gristway.os;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** How many files a process may have open. */
public final class Descriptors {

  private static final int FEWEST = 256;

  private Descriptors() {}

  /** How many files one user of them may keep open: a third of what the process may. */
  public static int share() {
    try {
      for (String line : Files.readAllLines(Path.of("/proc/self/limits"))) {
        if (line.startsWith("Max open files")) {
          String[] words = line.split("\\s+");
          return Math.clamp(Long.parseLong(words[3]) / 3, FEWEST, 1 << 20);
        }
      }
    } catch (IOException | NumberFormatException unknown) {
      // Then as many as any system allows.
    }
    return FEWEST;
  }
}
