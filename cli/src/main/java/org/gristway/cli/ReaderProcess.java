package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.counters.Counters;

/**
 * A loader in a running process: what it counts, and the command that it belongs to.
 *
 * @param process its id
 * @param command as it was called
 * @param counters by name, in their order
 */
record ReaderProcess(long process, String command, Map<String, Long> counters) {

  private static final Path PROCESSES = Path.of("/proc");

  /** Those in one process. */
  static List<ReaderProcess> in(long process) {
    List<ReaderProcess> readers = new ArrayList<>();
    for (Map<String, Long> counters : Counters.of(process)) {
      if (!counters.isEmpty()) {
        readers.add(new ReaderProcess(process, command(process), counters));
      }
    }
    return readers;
  }

  /** Those in all processes of this user, by process id. */
  static List<ReaderProcess> all() {
    try (Stream<Path> entries = Files.list(PROCESSES)) {
      UserPrincipal user = Files.getOwner(PROCESSES.resolve("self"));
      return entries
          .filter(entry -> entry.getFileName().toString().matches("\\d{1,18}"))
          .filter(entry -> isOwnedBy(user, entry))
          .map(entry -> Long.valueOf(entry.getFileName().toString()))
          .sorted()
          .flatMap(process -> in(process).stream())
          .toList();
    } catch (IOException failed) {
      throw Failure.io("list the processes in " + PROCESSES, failed);
    }
  }

  private static boolean isOwnedBy(UserPrincipal user, Path entry) {
    try {
      return Files.getOwner(entry).equals(user);
    } catch (IOException gone) {
      return false;
    }
  }

  /** Java's own arguments say nothing to anybody: what counts stands behind the jar. */
  private static String command(long process) {
    List<String> words;
    try {
      String line = Files.readString(PROCESSES.resolve(process + "/cmdline"));
      words = Arrays.asList(line.split("\0"));
    } catch (IOException gone) {
      return "";
    }
    int jar = words.indexOf("-jar") + 1;
    return jar > 0 && jar < words.size() && words.get(jar).endsWith("gristway.jar")
        ? ("gristway " + String.join(" ", words.subList(jar + 1, words.size()))).strip()
        : String.join(" ", words);
  }
}
