package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.gristway.cli.Cli;
import org.gristway.testing.SystemTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The demo as somebody who is not root, and on disks that do not suit it. */
@SystemTest
class DemoSurroundingsTest {

  private static final int NOBODY = 65534;

  @TempDir Path folder;

  @Test
  void works_without_root() throws Exception {
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
    Path jar = folder.resolve("gristway.jar");
    Files.copy(Path.of(System.getProperty("gristway.jar")), jar);
    Path place = Files.createDirectory(folder.resolve("place"));
    Files.setAttribute(place, "unix:uid", NOBODY);
    String out =
        new Cli()
            .through("setpriv", "--reuid=" + NOBODY, "--regid=" + NOBODY, "--clear-groups")
            .java("-XX:-UsePerfData")
            .jar(jar)
            .in(place)
            .call("demo", "--files", 1000, "demo")
            .isDone()
            .outText();
    assertThat(out).contains("pages let go with posix_fadvise", "   redirect ");
    assertThat(place.resolve("demo/report.html")).isNotEmptyFile();
  }

  @Test
  void needs_space_and_says_so_before_it_begins() throws Exception {
    try (SmallDisk disk = SmallDisk.mount(SmallDisk.Kind.TMPFS, folder, 20 << 20)) {
      Path target = disk.folder().resolve("demo");
      assertThat(Cli.run("demo", "--files", 1000, target).complaint(3))
          .contains("the demo needs 27.3 MiB of space", "--files");
      assertThat(Trees.names(disk.folder())).isEmpty();
    }
  }

  @Test
  void says_so_where_nothing_can_be_cold() throws Exception {
    try (SmallDisk disk = SmallDisk.mount(SmallDisk.Kind.TMPFS, folder, 60 << 20)) {
      Path target = disk.folder().resolve("demo");
      String out = Cli.run("demo", "--files", 1000, target).isDone().outText();
      assertThat(out).contains("but this folder is in memory");
      assertThat(Files.readString(target.resolve("report.html"))).contains("Nothing was cold here");
    }
  }
}
