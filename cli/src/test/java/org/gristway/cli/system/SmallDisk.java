package org.gristway.cli.system;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileChannel;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A file system of some MiB, mounted on a folder until closed. */
final class SmallDisk implements AutoCloseable {

  private static final int BLOCK = 4096;

  private final Path ballast;
  private final Path folder;

  private SmallDisk(Path mounted) throws IOException {
    ballast = mounted.resolve("ballast");
    folder = Files.createDirectory(mounted.resolve("folder"));
  }

  enum Kind {
    TMPFS,
    EXT4
  }

  /** Mounts one in a new folder of {@code parent}. */
  static SmallDisk mount(Kind kind, Path parent, long bytes) throws IOException {
    Path point = Files.createDirectory(parent.resolve("disk"));
    switch (kind) {
      case TMPFS -> Commands.run("mount", "-t", "tmpfs", "-o", "size=" + bytes, "none", "" + point);
      case EXT4 -> {
        Path image = parent.resolve("image");
        try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
          file.setLength(bytes);
        }
        Commands.Output made = Commands.call("mkfs.ext4", "-q", "-F", "-m", "0", "" + image);
        assumeTrue(made.exit() == 0, "no mkfs.ext4 here");
        Commands.Output mounted = Commands.call("mount", "-o", "loop", "" + image, "" + point);
        if (mounted.exit() != 0) {
          Files.delete(image);
          Files.delete(point);
        }
        assumeTrue(mounted.exit() == 0, "no loop devices here: " + mounted.text());
      }
    }
    try {
      return new SmallDisk(point);
    } catch (IOException | RuntimeException failed) {
      Commands.run("umount", point.toString());
      throw failed;
    }
  }

  /** Where files go. */
  Path folder() {
    return folder;
  }

  long used() throws IOException {
    FileStore store = Files.getFileStore(folder);
    return store.getTotalSpace() - store.getUnallocatedSpace();
  }

  /** Fills it up, but for so many bytes. */
  void leave(long bytes) throws IOException {
    Files.deleteIfExists(ballast);
    long fill = Files.getFileStore(folder).getUnallocatedSpace() - bytes;
    try (FileChannel file =
        FileChannel.open(ballast, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      java.nio.ByteBuffer block = java.nio.ByteBuffer.allocate(BLOCK);
      for (long at = 0; at + BLOCK <= fill; at += BLOCK) {
        file.write(block.clear(), at);
      }
    } catch (IOException full) {
      // As full as it can be, which is what is wanted.
    }
    sync();
  }

  /** Makes the space free again. */
  void clear() throws IOException {
    Files.deleteIfExists(ballast);
    sync();
  }

  /** Space that is given back, or taken, late would be counted wrongly. */
  void sync() {
    Commands.run("sync", "-f", folder.toString());
  }

  @Override
  public void close() throws IOException {
    Path point = folder.getParent();
    Commands.run("umount", point.toString());
    Files.delete(point);
    Files.deleteIfExists(point.resolveSibling("image"));
  }
}
