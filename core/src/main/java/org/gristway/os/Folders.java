package org.gristway.os;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import org.jspecify.annotations.Nullable;

/** What is done to whole folders: make their entries durable, exchange them, delete them. */
public final class Folders {

  private Folders() {}

  /** Returns when the names in the folder (created, renamed, removed) are durable. */
  public static void sync(Path folder) throws IOException {
    int fd = Posix.open(NativeFile.bytes(folder), Posix.READ_ONLY);
    try {
      Posix.sync(fd);
    } catch (PosixException refused) {
      if (refused.number() != PosixException.EINVAL) { // some network mounts have no such call
        throw refused;
      }
    } finally {
      Posix.close(fd);
    }
  }

  /** Gives two folders each other's names, in one step; false where the file system cannot. */
  public static boolean tryExchange(Path one, Path other) throws IOException {
    try {
      Posix.exchange(NativeFile.bytes(one), NativeFile.bytes(other));
      return true;
    } catch (PosixException refused) {
      if (refused.number() != PosixException.EINVAL
          && refused.number() != PosixException.EOPNOTSUPP) {
        throw refused;
      }
      return false;
    }
  }

  /** Deletes a folder and all in it, if it is there. Links are deleted, never followed. */
  public static void deleteTree(Path folder) throws IOException {
    if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
      Files.deleteIfExists(folder);
      return;
    }
    Files.walkFileTree(
        folder,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFileFailed(Path file, IOException failure)
              throws IOException {
            if (failure instanceof NoSuchFileException) {
              return FileVisitResult.CONTINUE;
            }
            throw failure;
          }

          @Override
          public FileVisitResult postVisitDirectory(Path done, @Nullable IOException failure)
              throws IOException {
            if (failure != null) {
              throw failure;
            }
            Files.deleteIfExists(done);
            return FileVisitResult.CONTINUE;
          }
        });
  }
}
