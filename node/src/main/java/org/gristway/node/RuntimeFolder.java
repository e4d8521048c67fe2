package org.gristway.node;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * Where the sockets of a user's nodes are: a folder that nobody else may enter. The same choice is
 * made in the Python client's {@code node.py}.
 */
public final class RuntimeFolder {

  /** What a socket's address has room for. */
  private static final int MOST_PATH_BYTES = 106;

  private static final String PRIVATE = "rwx------";

  private RuntimeFolder() {}

  /** The socket of a node that has a name. */
  public static Path named(String name) {
    if (name.isEmpty() || name.contains("/") || name.startsWith(".")) {
      throw Failure.wrongCall("a node cannot have the name '%s'", name);
    }
    Path socket = folder().resolve("named-" + name + ".sock");
    if (socket.toString().getBytes(StandardCharsets.UTF_8).length > MOST_PATH_BYTES) {
      throw Failure.environment(
          "the path of a socket may have %d bytes, and %s has more: set GRISTWAY_RUNTIME_DIR to a"
              + " shorter folder",
          MOST_PATH_BYTES, socket);
    }
    return socket;
  }

  /**
   * A folder that has vanished, made again; or, if that is not to be had, the one for temporaries.
   */
  static Path restored(Path folder) throws IOException {
    boolean isGiven = environment("GRISTWAY_RUNTIME_DIR") != null;
    try {
      make(folder, true);
      check(folder, user(), !isGiven);
      return folder;
    } catch (IOException | Failure gone) {
      Path other = temporary(user());
      make(other, false);
      check(other, user(), true);
      return other;
    }
  }

  private static int user() {
    try {
      return (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    } catch (IOException noProc) {
      throw Failure.io("look at /proc/self", noProc);
    }
  }

  private static Path temporary(int user) {
    String temporary = environment("TMPDIR");
    return Path.of(temporary == null ? "/tmp" : temporary, "gristway-" + user);
  }

  private static Path folder() {
    int user = user();
    String given = environment("GRISTWAY_RUNTIME_DIR");
    String users = environment("XDG_RUNTIME_DIR");
    Path folder;
    if (given != null) {
      folder = Path.of(given).toAbsolutePath();
    } else if (users != null && Files.isWritable(Path.of(users))) {
      folder = Path.of(users, "gristway");
    } else {
      folder = temporary(user);
    }
    try {
      make(folder, given != null);
      check(folder, user, given == null);
    } catch (IOException failed) {
      throw Failure.io("make the folder " + folder, failed);
    }
    return folder;
  }

  private static @Nullable String environment(String name) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? null : value;
  }

  private static void make(Path folder, boolean withParents) throws IOException {
    Path parent = folder.getParent();
    if (withParents && parent != null) {
      Files.createDirectories(parent);
    }
    try {
      Files.createDirectory(
          folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(PRIVATE)));
    } catch (FileAlreadyExistsException known) {
      // It is looked at next.
    }
  }

  private static void check(Path folder, int user, boolean mayNotBeLink) throws IOException {
    LinkOption[] how =
        mayNotBeLink ? new LinkOption[] {LinkOption.NOFOLLOW_LINKS} : new LinkOption[0];
    boolean isOwn = (int) Files.getAttribute(folder, "unix:uid", how) == user;
    boolean isPrivate =
        PRIVATE.equals(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder, how)));
    if (!Files.isDirectory(folder, how) || !isOwn || !isPrivate) {
      throw Failure.environment(
          "%s must be a folder of your own that nobody else may enter (chmod 700): remove it, or set"
              + " GRISTWAY_RUNTIME_DIR to another",
          folder);
    }
  }
}
