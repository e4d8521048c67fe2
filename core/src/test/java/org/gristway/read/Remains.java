package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * What loaders hold of this process: threads, memory files, and mappings of them.
 *
 * @param threads names of ours that live
 */
record Remains(List<String> threads, List<String> memoryFiles, List<String> mappings) {

  private static final String OUR_MEMORY = "/memfd:gristway";

  static Remains now() {
    return new Remains(liveThreads(), openMemoryFiles(), mappedMemory());
  }

  /** Nothing has been left since; what a test before has left is not told again. */
  void assertNoMore() {
    Remains now = now();
    assertThat(now.threads).isEqualTo(threads);
    assertThat(now.memoryFiles).isEqualTo(memoryFiles);
    assertThat(now.mappings).isEqualTo(mappings);
  }

  private static List<String> liveThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(Thread::isAlive)
        .map(Thread::getName)
        .filter(name -> name.startsWith("gristway-"))
        .sorted()
        .toList();
  }

  private static List<String> openMemoryFiles() {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.map(Remains::target)
          .filter(name -> name.startsWith(OUR_MEMORY))
          .sorted()
          .toList();
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  private static String target(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (IOException closed) {
      return "";
    }
  }

  private static List<String> mappedMemory() {
    return lines("/proc/self/maps").stream().filter(line -> line.contains(OUR_MEMORY)).toList();
  }

  /** All address space of this process, touched or not. */
  static long addressSpace() {
    return lines("/proc/self/status").stream()
        .filter(line -> line.startsWith("VmSize:"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
        .findFirst()
        .orElseThrow();
  }

  /** Files of a folder that this process has open or mapped. */
  static List<String> open(Path folder) {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return Stream.concat(
              open.map(Remains::target).filter(name -> name.startsWith(folder + "/")),
              lines("/proc/self/maps").stream().filter(line -> line.contains(folder + "/")))
          .toList();
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** The files of a folder that this process has open, each as it can be opened once more. */
  static List<Path> descriptors(Path folder) {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.filter(each -> target(each).startsWith(folder + "/")).toList();
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  private static List<String> lines(String file) {
    try {
      return Files.readAllLines(Path.of(file));
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }
}
