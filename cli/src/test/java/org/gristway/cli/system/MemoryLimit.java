package org.gristway.cli.system;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** A control group that limits the memory of processes started in it; removed when closed. */
final class MemoryLimit implements AutoCloseable {

  private static final Path V1 = Path.of("/sys/fs/cgroup/memory");
  private static final Path V2 = Path.of("/sys/fs/cgroup");

  private final Path group;
  private final boolean v1;
  private final Thread watcher;
  private volatile boolean closed;
  private volatile long mostAnonymous;
  private volatile long mostKernel;

  /** Makes one. The kernel counts the page cache too, but gives that up when it needs memory. */
  MemoryLimit(long bytes) throws IOException {
    v1 = Files.exists(V1.resolve("memory.limit_in_bytes"));
    if (!v1) {
      Path children = V2.resolve("cgroup.subtree_control");
      assumeTrue(
          Files.exists(children) && Files.readString(children).contains("memory"),
          "no control groups for memory here");
    }
    group =
        Files.createDirectory(
            (v1 ? V1 : V2).resolve("gristway-test-" + ProcessHandle.current().pid()));
    try {
      Files.writeString(group.resolve(v1 ? "memory.limit_in_bytes" : "memory.max"), "" + bytes);
      Path swap = group.resolve(v1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max");
      if (Files.exists(swap)) {
        Files.writeString(swap, v1 ? "" + bytes : "0");
      }
    } catch (IOException failed) {
      Files.delete(group);
      throw failed;
    }
    watcher = Thread.ofPlatform().daemon().start(this::watch);
  }

  /** What starts a command in the group. */
  String[] wrapper() {
    return new String[] {
      "sh", "-c", "echo $$ >" + group.resolve("cgroup.procs") + " && exec \"$@\"", "sh"
    };
  }

  private void watch() {
    try {
      while (!closed) {
        Map<String, Long> stat = stat();
        mostAnonymous = Math.max(mostAnonymous, stat.getOrDefault(v1 ? "total_rss" : "anon", 0L));
        mostKernel = Math.max(mostKernel, v1 ? kernel() : stat.getOrDefault("kernel", 0L));
        Thread.sleep(50);
      }
    } catch (IOException | InterruptedException end) {
      // The group is gone.
    }
  }

  private long kernel() throws IOException {
    Path usage = group.resolve("memory.kmem.usage_in_bytes");
    return Files.exists(usage) ? Long.parseLong(Files.readString(usage).strip()) : 0;
  }

  private Map<String, Long> stat() throws IOException {
    Map<String, Long> stat = new HashMap<>();
    for (String line : Files.readAllLines(group.resolve("memory.stat"))) {
      String[] words = line.split(" ");
      stat.put(words[0], Long.parseLong(words[1]));
    }
    return stat;
  }

  /** In MiB: what programs hold, what the kernel holds for them, and all with the page cache. */
  String report() throws IOException {
    Path peak = group.resolve(v1 ? "memory.max_usage_in_bytes" : "memory.peak");
    long all = Files.exists(peak) ? Long.parseLong(Files.readString(peak).strip()) : 0;
    return String.format(
        "peak memory: rss %d MiB, kernel %d MiB, all with page cache %d MiB",
        mostAnonymous >> 20, mostKernel >> 20, all >> 20);
  }

  @Override
  public void close() throws IOException {
    closed = true;
    watcher.interrupt();
    for (int i = 0; ; i++) {
      try {
        Files.delete(group);
        return;
      } catch (IOException busy) {
        if (i == 50) {
          throw busy; // processes that have just ended are counted for a moment
        }
        try {
          Thread.sleep(20);
        } catch (InterruptedException stop) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }
}
