package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.gristway.cli.Cli;

/** A copy of this repository's files as a new checkout has them, with nothing built. */
record Checkout(Path root) {

  private static final long LIMIT_SECONDS = 300;

  static Checkout into(Path folder) throws IOException {
    Path from = Path.of(System.getProperty("gristway.root"));
    Commands.Output listed =
        Commands.call(
            "git",
            "-c",
            "safe.directory=*",
            "-C",
            from.toString(),
            "ls-files",
            "-z",
            "-co",
            "--exclude-standard");
    assumeTrue(listed.exit() == 0, "needs git and a checkout: " + listed.text());
    for (String name : listed.text().split("\0")) {
      // A file that is deleted and not committed yet is listed too.
      if (Files.isRegularFile(from.resolve(name))) {
        Path copy = folder.resolve(name);
        Files.createDirectories(copy.getParent());
        Files.copy(from.resolve(name), copy, StandardCopyOption.COPY_ATTRIBUTES);
      }
    }
    return new Checkout(folder);
  }

  Path launcher() {
    return root.resolve("gristway");
  }

  /** A command in an environment of its own: PATH and HOME, and what else is given. */
  static ProcessBuilder bare(Path workingFolder, List<String> environment, Object... command) {
    List<String> all = new ArrayList<>(List.of("env", "-i"));
    if (environment.stream().noneMatch(setting -> setting.startsWith("PATH="))) {
      all.add("PATH=" + System.getenv("PATH"));
    }
    if (environment.stream().noneMatch(setting -> setting.startsWith("HOME="))) {
      all.add("HOME=" + System.getProperty("user.home"));
    }
    all.addAll(environment);
    for (Object word : command) {
      all.add(word.toString());
    }
    return new ProcessBuilder(all)
        .directory(workingFolder.toFile())
        .redirectInput(Path.of("/dev/null").toFile());
  }

  /** What is printed must fit into a pipe. */
  static Cli.Result await(Process process) throws IOException, InterruptedException {
    if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
      process.destroyForcibly();
      throw new AssertionError("still running after " + LIMIT_SECONDS + " s");
    }
    byte[] out = process.getInputStream().readAllBytes();
    byte[] err = process.getErrorStream().readAllBytes();
    return new Cli.Result(process.exitValue(), out, new String(err, StandardCharsets.UTF_8));
  }

  static Cli.Result call(Path workingFolder, List<String> environment, Object... command)
      throws IOException, InterruptedException {
    return await(bare(workingFolder, environment, command).start());
  }

  /** A folder with nothing but these tools, for a PATH on which some others are missing. */
  static Path tools(Path folder, String... names) throws IOException {
    Files.createDirectories(folder);
    for (String name : names) {
      String found = Commands.run("sh", "-c", "command -v \"$1\"", "sh", name).strip();
      assertThat(found).startsWith("/");
      Files.createSymbolicLink(folder.resolve(name), Path.of(found));
    }
    return folder;
  }
}
