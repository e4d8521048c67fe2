package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.gristway.Progress;
import org.gristway.cli.Cli;
import org.gristway.pack.PackOptions;
import org.gristway.pack.Packer;
import org.gristway.testing.Seeds;
import org.gristway.testing.SystemTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where a file system refuses direct reads, the same comes through the page cache. */
@SystemTest
class ReadMountTest {

  @TempDir Path folder;

  @Test
  void a_file_system_without_direct_reads_gives_the_same_order() throws IOException {
    Random random = new Random(Seeds.of("ReadMountTest"));
    Path source = Trees.make(folder.resolve("source"), 300, 9000, random);
    Path dataset = folder.resolve("data.gw");
    Packer.pack(
        List.of(source),
        dataset,
        PackOptions.DEFAULT.withChunkSize(64 << 10),
        Progress.NONE,
        line -> {});
    Path point = Files.createDirectory(folder.resolve("mounted"));
    Commands.Output mounted = Commands.call("mount", "-t", "ramfs", "none", point.toString());
    assumeTrue(mounted.exit() == 0, "no ramfs here: " + mounted.text());
    try {
      Path copy = Trees.copy(dataset, point.resolve("data.gw"));
      assertThat(isDirectRefused(copy.resolve("chunk-000000.gwc"))).isTrue();
      assertThat(digests(copy)).isEqualTo(digests(dataset));
    } finally {
      Commands.run("umount", point.toString());
    }
  }

  private static boolean isDirectRefused(Path file) {
    return Commands.call("dd", "if=" + file, "of=/dev/null", "iflag=direct", "bs=4096", "count=1")
            .exit()
        != 0;
  }

  private static List<String> digests(Path dataset) {
    return Reading.digests(
        Cli.run("read", dataset, "--json", "--memory=512KiB", "--extent=16KiB", "--epochs=2"));
  }
}
