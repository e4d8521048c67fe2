package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Slower storage than there is: control groups (version 1) that limit what the processes in them
 * read from the disk, and the memory that they and the page cache may take. Needs root.
 */
final class Storage implements AutoCloseable {

  /** What a kind of storage can do. */
  enum Profile {
    NVME(0, 0),
    CLOUD(500_000_000, 3_000),
    HDD(180_000_000, 200);

    final long bytesPerSecond;
    final long readsPerSecond;

    Profile(long bytesPerSecond, long readsPerSecond) {
      this.bytesPerSecond = bytesPerSecond;
      this.readsPerSecond = readsPerSecond;
    }

    String text() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private final Path disk;
  private final Path memory;
  private final String device;

  /**
   * @param name of the groups, so that there can be several
   */
  Storage(Profile profile, Path folder, long memoryBytes, String name)
      throws IOException, InterruptedException {
    String group = "gristway-benchmark-" + ProcessHandle.current().pid() + "-" + name;
    device =
        Machine.run("sh", "-c", "lsblk -no MAJ:MIN $(df --output=source " + folder + " | tail -1)")
            .strip();
    disk = Files.createDirectories(Path.of("/sys/fs/cgroup/blkio", group));
    memory = Files.createDirectories(Path.of("/sys/fs/cgroup/memory", group));
    Files.writeString(memory.resolve("memory.limit_in_bytes"), "" + memoryBytes);
    limit("blkio.throttle.read_bps_device", profile.bytesPerSecond);
    limit("blkio.throttle.read_iops_device", profile.readsPerSecond);
  }

  private void limit(String file, long perSecond) throws IOException {
    Files.writeString(disk.resolve(file), device + " " + perSecond);
  }

  /**
   * A command, run inside the groups from a page cache that is cold but for the programs
   * themselves: a JVM that is read from a slow disk in small pieces would be most of what is
   * measured.
   *
   * @param alsoWarm what else is in the page cache
   */
  Result run(List<String> command, Path... alsoWarm) throws IOException, InterruptedException {
    Machine.dropCaches();
    Machine.warm(Path.of(System.getProperty("java.home"), "lib"));
    for (String entry : System.getProperty("java.class.path", "").split(":")) {
      Machine.warm(Path.of(entry));
    }
    if (command.getFirst().equals(Machine.FIO)) {
      Machine.run(Machine.FIO, "--version");
    }
    for (Path path : alsoWarm) {
      Machine.warm(path);
    }
    long before = requests();
    List<String> all =
        new ArrayList<>(
            List.of(
                "sh",
                "-c",
                "echo $$ > "
                    + disk.resolve("cgroup.procs")
                    + " && echo $$ > "
                    + memory.resolve("cgroup.procs")
                    + " && exec \"$@\"",
                "sh"));
    all.addAll(command);
    String output = Machine.run(all.toArray(String[]::new));
    return new Result(output, requests() - before);
  }

  /**
   * @param requests that the disk got, after the kernel has split large reads
   */
  record Result(String output, long requests) {}

  private long requests() throws IOException {
    for (String line : Files.readAllLines(disk.resolve("blkio.throttle.io_serviced"))) {
      String[] words = line.split(" ");
      if (words.length == 3 && words[0].equals(device) && words[1].equals("Read")) {
        return Long.parseLong(words[2]);
      }
    }
    return 0;
  }

  @Override
  public void close() throws IOException {
    for (Path group : List.of(disk, memory)) {
      for (int i = 0; ; i++) {
        try {
          Files.delete(group);
          break;
        } catch (IOException busy) {
          if (i == 100) {
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
}
