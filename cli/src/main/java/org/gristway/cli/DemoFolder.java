package org.gristway.cli;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/** Where the demo makes its files. */
final class DemoFolder {

  /** Here temporary files are on a disk even where others are kept in memory. */
  private static final Path LARGE_FILES = Path.of("/var/tmp");

  private DemoFolder() {}

  /**
   * Makes the folder that is given, which must be new or empty, or one for temporary files.
   *
   * @throws Failure if it is not empty (wrong call), or on a disk with less space than this
   */
  static Path prepare(@Nullable Path given, long space) {
    try {
      if (given == null) {
        Path parent = forTemporaryFiles();
        checkSpace(parent, space);
        return Files.createTempDirectory(parent, "gristway-demo-");
      }
      if (Files.isDirectory(given)) {
        try (Stream<Path> inside = Files.list(given)) {
          if (inside.findAny().isPresent()) {
            throw Failure.wrongCall("%s is not empty; name a new folder for the demo", given);
          }
        }
      }
      checkSpace(nearestFolder(given), space);
      return Files.createDirectories(given);
    } catch (FileAlreadyExistsException file) {
      throw Failure.wrongCall("%s is a file; name a new folder for the demo", given);
    } catch (IOException failed) {
      throw Failure.io("make a folder for the demo", failed);
    }
  }

  private static Path forTemporaryFiles() {
    Path usual = Path.of(System.getProperty("java.io.tmpdir", "/tmp"));
    boolean elsewhere =
        Files.isDirectory(usual)
            && isInMemory(usual)
            && Files.isWritable(LARGE_FILES)
            && !isInMemory(LARGE_FILES);
    return elsewhere ? LARGE_FILES : usual;
  }

  /** True if what is written there never reaches a disk. */
  static boolean isInMemory(Path folder) {
    String type = fileSystem(folder);
    return type.equals("tmpfs") || type.equals("ramfs");
  }

  /** The type of the file system that a folder is on, such as "ext4". */
  static String fileSystem(Path folder) {
    try {
      return Files.getFileStore(folder).type();
    } catch (IOException hidden) {
      return "unknown"; // some containers do not show what is mounted where
    }
  }

  private static Path nearestFolder(Path path) {
    Path folder = path.toAbsolutePath();
    while (folder.getParent() != null && !Files.exists(folder)) {
      folder = folder.getParent();
    }
    return folder;
  }

  private static void checkSpace(Path folder, long needed) {
    long free = folder.toFile().getUsableSpace();
    if (free < needed) {
      throw Failure.environment(
          "the demo needs %s of space, and %s has %s: name a folder elsewhere, or fewer files with"
              + " --files",
          Text.bytes(needed), folder, Text.bytes(free));
    }
  }
}
