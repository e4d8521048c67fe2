package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.gristway.Failure;

/**
 * A page that a command writes beside its result. It appears complete or not at all, and replaces
 * what was there under its name.
 */
final class PageFile {

  /** Less what the user's mask takes away, as for any new file. */
  private static final FileAttribute<Set<PosixFilePermission>> MODE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-rw-rw-"));

  private final Path file;
  private final Path folder;

  private PageFile(Path file, Path folder) {
    this.file = file;
    this.folder = folder;
  }

  /** Complains about a place that cannot be, before there is anything to write. */
  static PageFile at(Path named) {
    if (Files.isDirectory(named)) {
      throw Failure.wrongCall("cannot write the page to %s: it is a folder; name a file", named);
    }
    Path file = target(named);
    Path folder = file.toAbsolutePath().getParent();
    if (folder == null || !Files.isDirectory(folder)) {
      throw Failure.wrongCall(
          "cannot write the page to %s: its folder does not exist; make it first", named);
    }
    if (!Files.isWritable(isSpecial(file) ? file : folder)) {
      throw Failure.environment(
          "cannot write the page to %s: permission denied; check who owns its folder and its mode",
          named);
    }
    return new PageFile(file, folder);
  }

  /** What a link leads to is replaced, not the link. */
  private static Path target(Path named) {
    try {
      return Files.isRegularFile(named) ? named.toRealPath() : named;
    } catch (IOException failed) {
      throw Failure.io("write the page to " + named, failed);
    }
  }

  /** True for a pipe or a device: a file cannot take its place. */
  private static boolean isSpecial(Path file) {
    return Files.exists(file) && !Files.isRegularFile(file);
  }

  /** Writes the page. */
  void write(String html) {
    try {
      if (isSpecial(file)) {
        Files.writeString(file, html);
      } else {
        replace(html);
      }
    } catch (IOException failed) {
      throw Failure.io("write the page to " + file, failed);
    }
  }

  private void replace(String html) throws IOException {
    Path aside = Files.createTempFile(folder, ".gristway-", ".html", MODE);
    try {
      Files.writeString(aside, html);
      Files.move(aside, file, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(aside);
    }
  }
}
