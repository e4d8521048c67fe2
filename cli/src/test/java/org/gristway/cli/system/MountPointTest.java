package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.cli.Cli;
import org.gristway.testing.SystemTest;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A dataset appears by a rename, which cannot replace what is mounted. */
@SystemTest
class MountPointTest {

  @TempDir Path folder;

  private Path source;

  @BeforeEach
  void makeSource() throws IOException {
    source = Files.createDirectories(folder.resolve("source"));
    Files.writeString(source.resolve("file"), "its bytes");
  }

  private void assertRefused(Object... options) throws IOException {
    Object[] call = new Object[options.length + 1];
    call[0] = "pack";
    System.arraycopy(options, 0, call, 1, options.length);
    assertThat(Cli.run(call).complaint(2)).contains("is a mount point; name a folder inside it");
    assertThat(Trees.names(folder)).noneMatch(name -> name.startsWith("."));
  }

  @Test
  void anEmptyDiskIsNoTargetButAFolderOnItIs() throws IOException {
    try (SmallDisk disk = SmallDisk.mount(SmallDisk.Kind.TMPFS, folder, 1 << 20)) {
      Path target = disk.folder().resolve("data.gw");
      Cli.run("pack", source, target).isDone();
      Trees.delete(disk.folder());
      Path point = disk.folder().getParent();
      assertRefused(source, point);
      assertThat(Trees.names(point)).isEmpty();
    }
  }

  @Test
  void aFolderThatIsMountedElsewhereTooIsNoTarget() throws IOException {
    Path real = Files.createDirectory(folder.resolve("real"));
    Path point = Files.createDirectory(folder.resolve("point"));
    Commands.run("mount", "--bind", real.toString(), point.toString());
    try {
      assertRefused(source, point);
      assertThat(Trees.names(real)).isEmpty();
    } finally {
      Commands.run("umount", point.toString());
    }
  }

  @Test
  void aMountedDatasetIsNotReplaced() throws IOException {
    Path dataset = folder.resolve("data.gw");
    Cli.run("pack", source, dataset).isDone();
    Path copy = Trees.copy(dataset, folder.resolve("copy"));
    Path point = Files.createDirectory(folder.resolve("point"));
    Commands.run("mount", "--bind", dataset.toString(), point.toString());
    try {
      assertRefused("--force", source, point);
      Trees.assertIdentical(dataset, copy);
    } finally {
      Commands.run("umount", point.toString());
    }
  }

  @Test
  void aDatasetOnAReadOnlyDiskIsReadAndNotChanged() throws IOException {
    Path dataset = folder.resolve("data.gw");
    Cli.run("pack", source, dataset).isDone();
    Path point = Files.createDirectory(folder.resolve("point"));
    Commands.run("mount", "--bind", "-o", "ro", folder.toString(), point.toString());
    try {
      Path seen = point.resolve("data.gw");
      Cli.run("verify", seen).isDone();
      assertThat(Cli.run("cat", seen, "file").isDone().outText()).isEqualTo("its bytes");
      assertThat(Cli.run("append", source, seen).complaint(3)).contains("Read-only file system");
      assertThat(Cli.run("rebuild", seen).complaint(3)).contains("Read-only file system");
      assertThat(Cli.run("pack", source, point.resolve("new.gw")).complaint(3))
          .contains("Read-only file system");
    } finally {
      Commands.run("umount", point.toString());
    }
  }
}
