package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What the demo ran on. */
final class DemoMachine {

  private DemoMachine() {}

  static String text() {
    StringBuilder text = new StringBuilder();
    text.append(Text.count(Runtime.getRuntime().availableProcessors(), "core"));
    String model = field("/proc/cpuinfo", "model name");
    if (!model.isEmpty()) {
      text.append(" (").append(model).append(')');
    }
    String memory = field("/proc/meminfo", "MemTotal").replaceAll("\\D", "");
    if (!memory.isEmpty()) {
      text.append(", ").append(Text.bytes(Long.parseLong(memory) * 1024.0)).append(" of memory");
    }
    return text + ", Linux " + System.getProperty("os.version");
  }

  /** What a file of lines like "name : value" says of a name first; empty if nothing. */
  private static String field(String file, String name) {
    try {
      List<String> lines = Files.readAllLines(Path.of(file));
      for (String line : lines) {
        if (line.startsWith(name)) {
          return line.substring(line.indexOf(':') + 1).strip();
        }
      }
    } catch (IOException none) {
      // Not every system tells.
    }
    return "";
  }
}
