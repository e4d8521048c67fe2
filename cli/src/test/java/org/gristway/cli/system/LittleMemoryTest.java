package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.gristway.cli.Cli;
import org.gristway.testing.SystemTest;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.json.JsonMapper;

/** Memory does not grow with the number of files: 512 MiB do for millions of them. */
@SystemTest
class LittleMemoryTest {

  private static final long LIMIT = 512 << 20;
  private static final int BLOCK = 512;

  @TempDir Path folder;

  @Test
  void packsATarOfMillionsOfEntries() throws IOException {
    int count = Thorough.count(300_000, 10_000_000);
    Path tar = folder.resolve("empty.tar");
    writeTar(tar, count);
    withLittleMemory(tar, count, "pack", "info", "verify", "rebuild");
  }

  @Test
  void packsAFolderOfAMillionFiles() throws IOException {
    int count = Thorough.count(100_000, 1_000_000);
    Path source = folder.resolve("empty");
    Path full = Files.createDirectories(source.resolve("all"));
    for (int i = 0; i < count; i++) {
      Files.createFile(full.resolve("file" + i));
    }
    withLittleMemory(source, count, "pack", "verify");
  }

  private void withLittleMemory(Path source, int count, String... commands) throws IOException {
    // Files there are memory, and nothing that the kernel could give up.
    assumeFalse(Files.getFileStore(folder).type().equals("tmpfs"), "temporary files are in memory");
    Path dataset = folder.resolve("data.gw");
    for (String command : commands) {
      Object[] call =
          switch (command) {
            // Without labels, a tar of folders is told of.
            case "pack" -> new Object[] {command, "--labels", "folders", source, dataset};
            case "info" -> new Object[] {command, "--json", dataset};
            default -> new Object[] {command, dataset};
          };
      try (MemoryLimit limit = new MemoryLimit(LIMIT)) {
        long start = System.nanoTime();
        Cli.Result result =
            new Cli().flags(launcherFlags(command)).through(limit.wrapper()).within(600).call(call);
        System.out.printf(
            "%s, %,d entries: %s took %.1f s; %s%n",
            source.getFileName(),
            count,
            command,
            (System.nanoTime() - start) / 1e9,
            limit.report());
        String out = result.isDone().outText();
        switch (command) {
          case "info" ->
              assertThat(JsonMapper.shared().readTree(out).get("samples").asLong())
                  .isEqualTo(count);
          case "verify" -> assertThat(out).startsWith(String.format("ok: %,d samples", count));
          case "rebuild" -> assertThat(out).contains("the snapshot was right already");
          default -> assertThat(out).startsWith(String.format("packed %,d samples", count));
        }
      }
    }
    Trees.delete(dataset);
    Trees.delete(source);
  }

  /** Those of the launcher, as it is: what users get. */
  private static List<String> launcherFlags(String command) throws IOException {
    String script = Files.readString(Path.of(System.getProperty("gristway.root"), "gristway"));
    String flags = script.substring(script.indexOf("java_flags=(\n") + 13);
    List<String> all = new ArrayList<>();
    flags
        .substring(0, flags.indexOf("\n)"))
        .lines()
        .map(String::strip)
        .filter(line -> !line.startsWith("#"))
        .forEach(line -> all.addAll(List.of(line.split(" "))));
    assertThat(all).anyMatch(flag -> flag.startsWith("-Xmx"));
    Matcher more = Pattern.compile("\n  ([a-z |]+)\\) java_flags\\+=\\((.+)\\) ;;").matcher(script);
    int cases = 0;
    for (; more.find(); cases++) {
      if (List.of(more.group(1).split(" \\| ")).contains(command)) {
        all.addAll(List.of(more.group(2).split(" ")));
      }
    }
    assertThat(cases).isPositive();
    return all;
  }

  /** Headers only, in the oldest format that has folders in names: ustar. */
  private static void writeTar(Path tar, int count) throws IOException {
    byte[] header = new byte[BLOCK];
    put(header, 100, "0000644\0" + "0000000\0" + "0000000\0" + "00000000000\0" + "00000000000\0");
    header[156] = '0';
    put(header, 257, "ustar\0" + "00");
    try (OutputStream file = Files.newOutputStream(tar);
        OutputStream out = new BufferedOutputStream(file, 1 << 20)) {
      for (int i = 0; i < count; i++) {
        put(header, 0, String.format("some-folder-%04d/file-%09d", i / 1000, i));
        putChecksum(header);
        out.write(header);
      }
      out.write(new byte[2 * BLOCK]);
    }
  }

  private static void put(byte[] header, int at, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(bytes, 0, header, at, bytes.length);
  }

  private static void putChecksum(byte[] header) {
    put(header, 148, "        ");
    int sum = 0;
    for (byte b : header) {
      sum += b;
    }
    put(header, 148, String.format("%06o\0 ", sum));
  }
}
