package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.gristway.cli.Cli;
import org.gristway.counters.Counters;

/** A {@code gristway read} in a process of its own, seen from outside while it runs. */
record Reading(Process process) {

  private static final String OUR_MEMORY = "/memfd:gristway-";

  /** The order of each epoch, in a few letters. */
  static List<String> digests(Cli.Result result) {
    List<String> digests = Cli.digests(result.isDone().json());
    assertThat(digests).doesNotContainNull().isNotEmpty();
    return digests;
  }

  long pid() {
    return process.pid();
  }

  /** What it counts now; 0 if it does not count yet. */
  long counter(String name) {
    for (Map<String, Long> counters : Counters.of(pid())) {
      return counters.getOrDefault(name, 0L);
    }
    return 0;
  }

  /** Returns when it has been given so many batches. It must not end before. */
  void awaitBatches(long count) throws InterruptedException {
    while (counter("batches") < count) {
      assertThat(process.isAlive()).isTrue();
      Thread.sleep(1);
    }
  }

  /** The memory files that it has open, by inode. */
  List<Long> memoryFiles() {
    return memoryFiles(Path.of("/proc/" + pid()));
  }

  /** The memory files that some process still has open. */
  static List<Long> allMemoryFiles() throws IOException {
    try (Stream<Path> processes = Files.list(Path.of("/proc"))) {
      return processes
          .filter(entry -> entry.getFileName().toString().matches("\\d+"))
          .flatMap(entry -> memoryFiles(entry).stream())
          .toList();
    }
  }

  private static List<Long> memoryFiles(Path processEntry) {
    List<Long> inodes = new ArrayList<>();
    try (Stream<Path> open = Files.list(processEntry.resolve("fd"))) {
      for (Path descriptor : open.toList()) {
        if (Files.readSymbolicLink(descriptor).toString().startsWith(OUR_MEMORY)) {
          inodes.add((Long) Files.getAttribute(descriptor, "unix:ino"));
        }
      }
    } catch (IOException gone) {
      // The process, or the file, as we looked.
    }
    return inodes;
  }

  /** System V segments that it has made or used. There should never be any. */
  List<String> segments() throws IOException {
    Path list = Path.of("/proc/sysvipc/shm");
    if (!Files.exists(list)) {
      return List.of();
    }
    String pid = String.valueOf(pid());
    return Files.readAllLines(list).stream()
        .filter(line -> List.of(line.strip().split("\\s+")).subList(4, 6).contains(pid))
        .toList();
  }

  void signal(String name) {
    Commands.run("kill", "-" + name, String.valueOf(pid()));
  }
}
