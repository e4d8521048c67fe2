package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.gristway.Progress;
import org.gristway.dataset.Verifier;
import org.gristway.os.Folders;

/** Folders of small files, and datasets made of them. */
final class Trees {

  private static final int CLASSES = 7;

  private Trees() {}

  /** Makes files of random bytes, of up to {@code longest} each. */
  static Path make(Path folder, int files, int longest, Random random) throws IOException {
    for (int i = 0; i < CLASSES; i++) {
      Files.createDirectories(folder.resolve(folder.getFileName() + "-" + i));
    }
    for (int i = 0; i < files; i++) {
      byte[] bytes = new byte[random.nextInt(longest + 1)];
      random.nextBytes(bytes);
      Files.write(
          folder.resolve(folder.getFileName() + "-" + i % CLASSES).resolve("file" + i), bytes);
    }
    return folder;
  }

  /** Copies a folder of files. */
  static Path copy(Path from, Path to) throws IOException {
    Files.createDirectory(to);
    try (Stream<Path> files = Files.list(from)) {
      for (Path file : files.toList()) {
        Files.copy(file, to.resolve(file.getFileName()));
      }
    }
    return to;
  }

  static void delete(Path folder) throws IOException {
    Folders.deleteTree(folder);
  }

  static List<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }

  static boolean exists(Path path) {
    return Files.exists(path, LinkOption.NOFOLLOW_LINKS);
  }

  /** What a dataset says to its readers: the names that begin with no dot, and their bytes. */
  static boolean isSame(Path one, Path other) throws IOException {
    return visible(one).equals(visible(other)) && firstDifference(one, other) == null;
  }

  private static TreeMap<String, Long> visible(Path folder) throws IOException {
    TreeMap<String, Long> sizes = new TreeMap<>();
    for (String name : names(folder)) {
      if (!name.startsWith(".")) {
        sizes.put(name, Files.size(folder.resolve(name)));
      }
    }
    return sizes;
  }

  private static String firstDifference(Path one, Path other) throws IOException {
    for (String name : visible(one).keySet()) {
      if (Files.mismatch(one.resolve(name), other.resolve(name)) >= 0) {
        return name;
      }
    }
    return null;
  }

  /** The same files with the same bytes, and none else. */
  static void assertIdentical(Path dataset, Path reference) throws IOException {
    assertThat(names(dataset)).isEqualTo(names(reference));
    assertThat(firstDifference(dataset, reference)).isNull();
  }

  static Verifier.Report verify(Path dataset) {
    Verifier.Report report = Verifier.verify(dataset, Progress.NONE);
    assertThat(report.faults()).isEmpty();
    return report;
  }
}
