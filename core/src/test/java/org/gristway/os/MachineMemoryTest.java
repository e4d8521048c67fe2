package org.gristway.os;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.pack.Programs;
import org.gristway.testing.SystemTest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is free here, and in a control group, as a container is. */
@SystemTest
class MachineMemoryTest {

  private static final long LIMIT = 300L << 20;

  @TempDir Path folder;
  private Path group;
  private String limitFile;

  @BeforeEach
  void makeGroup() throws IOException {
    Path v1 = Path.of("/sys/fs/cgroup/memory");
    boolean isV1 = Files.exists(v1.resolve("memory.limit_in_bytes"));
    Path children = Path.of("/sys/fs/cgroup/cgroup.subtree_control");
    assumeTrue(
        isV1 || (Files.exists(children) && Files.readString(children).contains("memory")),
        "no control groups for memory here");
    String name = "gristway-memory-" + ProcessHandle.current().pid();
    group = Files.createDirectory((isV1 ? v1 : Path.of("/sys/fs/cgroup")).resolve(name));
    limitFile = isV1 ? "memory.limit_in_bytes" : "memory.max";
  }

  @AfterEach
  void removeGroup() throws IOException {
    if (group != null) {
      Files.deleteIfExists(group.resolve("inner"));
      Files.delete(group);
    }
  }

  /** Prints what is available to a process. */
  static final class Print {

    private Print() {}

    public static void main(String[] args) {
      System.out.println(MachineMemory.available());
    }
  }

  private long availableIn(Path in) {
    String out =
        Programs.run(
            folder,
            "sh",
            "-c",
            "echo $$ >" + in.resolve("cgroup.procs") + " && exec \"$@\"",
            "sh",
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx32m",
            "-XX:+UseSerialGC",
            "-cp",
            System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
            Print.class.getName());
    return Long.parseLong(out.strip());
  }

  @Test
  void the_machine_has_what_the_kernel_says() throws IOException {
    long kernel =
        Files.readAllLines(Path.of("/proc/meminfo")).stream()
            .filter(line -> line.startsWith("MemAvailable:"))
            .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
            .findFirst()
            .orElseThrow();
    assertThat(MachineMemory.available()).isPositive().isLessThan(kernel + (1L << 30));
  }

  @Test
  void a_group_without_a_limit_has_what_the_machine_has() {
    assertThat(availableIn(group)).isGreaterThan(LIMIT);
  }

  @Test
  void a_group_with_a_limit_has_what_is_left_of_it() throws IOException {
    Files.writeString(group.resolve(limitFile), "" + LIMIT);
    assertThat(availableIn(group)).isPositive().isLessThan(LIMIT);
  }

  /** As with systemd, whose limits often stand on a slice above the service. */
  @Test
  void the_limit_of_a_group_above_holds_too() throws IOException {
    Files.writeString(group.resolve(limitFile), "" + LIMIT);
    Path inner = Files.createDirectory(group.resolve("inner"));
    assertThat(availableIn(inner)).isPositive().isLessThan(LIMIT);
  }
}
