package org.gristway.cli;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.Failure;
import org.gristway.os.Folders;

/**
 * Where a probe keeps its files. It goes with the probe; one that a killed probe has left goes when
 * the next begins.
 */
final class ProbeFolder implements AutoCloseable {

  private static final String NAME = ".gristway-probe-";

  private final Path path;

  private ProbeFolder(Path path) {
    this.path = path;
  }

  static ProbeFolder in(Path folder) {
    try {
      removeLeft(folder);
      return new ProbeFolder(
          Files.createDirectory(folder.resolve(NAME + ProcessHandle.current().pid())));
    } catch (IOException failed) {
      throw Failure.io("write to " + folder, failed);
    }
  }

  private static void removeLeft(Path folder) throws IOException {
    try (DirectoryStream<Path> left = Files.newDirectoryStream(folder, NAME + "*")) {
      for (Path each : left) {
        String process = each.getFileName().toString().substring(NAME.length());
        if (process.matches("[0-9]{1,18}") && ProcessHandle.of(Long.parseLong(process)).isEmpty()) {
          Folders.deleteTree(each);
        }
      }
    }
  }

  Path file(String name) {
    return path.resolve(name);
  }

  @Override
  public void close() {
    try {
      Folders.deleteTree(path);
    } catch (IOException failed) {
      throw Failure.io("remove " + path, failed);
    }
  }
}
