package org.gristway.os;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** How much memory this process can still get. */
public final class MachineMemory {

  private MachineMemory() {}

  /**
   * What is free, or can be freed at once, on the machine and in this process's container; all
   * there could be where that is not known.
   */
  public static long available() {
    return Math.min(onMachine(), inContainer());
  }

  private static long onMachine() {
    for (String line : lines(Path.of("/proc/meminfo"))) {
      if (line.startsWith("MemAvailable:")) {
        return Long.parseLong(line.replaceAll("\\D", "")) << 10;
      }
    }
    return Long.MAX_VALUE;
  }

  private static long inContainer() {
    long least = Long.MAX_VALUE;
    for (String line : lines(Path.of("/proc/self/cgroup"))) {
      String[] parts = line.split(":", 3);
      if (parts.length == 3 && parts[1].isEmpty()) {
        least = Math.min(least, leftUpTo(Path.of("/sys/fs/cgroup"), parts[2], true));
      } else if (parts.length == 3 && parts[1].equals("memory")) {
        least = Math.min(least, leftUpTo(Path.of("/sys/fs/cgroup/memory"), parts[2], false));
      }
    }
    return least;
  }

  /**
   * The least that a group and those above it have left. Inside a container the group's own path
   * may not be there; the top is then the container's.
   */
  private static long leftUpTo(Path top, String path, boolean unified) {
    long least = Long.MAX_VALUE;
    Path group = top.resolve(path.substring(1)).normalize();
    for (; group != null && group.startsWith(top); group = group.getParent()) {
      long left =
          unified
              ? left(group, "memory.max", "memory.current", "inactive_file")
              : left(
                  group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
      least = Math.min(least, left);
    }
    return least;
  }

  private static long left(Path group, String limitFile, String usedFile, String freeable) {
    List<String> limit = lines(group.resolve(limitFile));
    List<String> used = lines(group.resolve(usedFile));
    if (limit.isEmpty() || used.isEmpty() || !limit.getFirst().matches("\\d{1,18}")) {
      return Long.MAX_VALUE; // "max", or no such file: the group has no limit, or it is not ours
    }
    long cache = 0;
    for (String line : lines(group.resolve("memory.stat"))) {
      if (line.startsWith(freeable + " ")) {
        cache = Long.parseLong(line.substring(freeable.length() + 1));
      }
    }
    long left = Long.parseLong(limit.getFirst()) - Long.parseLong(used.getFirst()) + cache;
    return Math.max(0, left);
  }

  private static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException none) {
      return List.of();
    }
  }
}
