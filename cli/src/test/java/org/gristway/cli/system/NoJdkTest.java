package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.gristway.cli.Cli;
import org.gristway.testing.SystemTest;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Machines without a JDK that Gristway runs on: others are hidden by mounts that only it sees. */
@SystemTest
class NoJdkTest {

  @TempDir Path folder;

  private Checkout checkout;
  private Path empty;

  @BeforeEach
  void copy() throws Exception {
    checkout = Checkout.into(folder.resolve("checkout"));
    empty = Files.createDirectory(folder.resolve("empty"));
  }

  private Cli.Result startWithout(String... settings) throws Exception {
    StringBuilder script = new StringBuilder();
    for (String hidden : List.of("/usr/lib/jvm", "/usr/java", "/opt")) {
      if (Files.isDirectory(Path.of(hidden))) {
        script.append("mount --bind ").append(empty).append(' ').append(hidden).append(" && ");
      }
    }
    script.append("exec \"$@\"");
    List<String> environment = new ArrayList<>(List.of(settings));
    environment.add("HOME=" + empty);
    return Checkout.call(
        folder,
        environment,
        "unshare",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        checkout.launcher(),
        "--version");
  }

  @Test
  void namesTheJdkWhereNoneIsFound() throws Exception {
    assertThat(startWithout().complaint(3))
        .startsWith("gristway: no JDK 25 here: install one")
        .contains("GRISTWAY_JAVA_HOME");
  }

  @Test
  void takesNoJdkThatIsTooOld() throws Exception {
    Path old = Files.createDirectories(folder.resolve("old/bin")).getParent();
    for (String tool : List.of("java", "javac")) {
      Files.writeString(old.resolve("bin").resolve(tool), "#!/bin/sh\necho old\n");
      assertThat(old.resolve("bin").resolve(tool).toFile().setExecutable(true)).isTrue();
    }
    Files.writeString(old.resolve("release"), "JAVA_VERSION=\"17.0.9\"\n");
    String path = "PATH=" + old.resolve("bin") + ":" + System.getenv("PATH");
    assertThat(startWithout(path, "JAVA_HOME=" + old).complaint(3)).contains("no JDK 25 here");
  }

  /** One that can run but not build is enough for what is built. */
  @Test
  void needsACompilerOnlyToBuild() throws Exception {
    Path real = Path.of(System.getProperty("java.home"));
    Path runtime = Files.createDirectories(folder.resolve("jre/bin")).getParent();
    Path seen = Files.createDirectory(folder.resolve("jdk"));
    Files.copy(real.resolve("release"), runtime.resolve("release"));
    Files.writeString(
        runtime.resolve("bin/java"), "#!/bin/sh\nexec " + seen.resolve("bin/java") + " \"$@\"\n");
    assertThat(runtime.resolve("bin/java").toFile().setExecutable(true)).isTrue();
    Commands.run("mount", "--bind", real.toString(), seen.toString());
    try {
      assertThat(startWithout("GRISTWAY_JAVA_HOME=" + runtime).complaint(3))
          .contains("no JDK 25 here");
      Path jar = checkout.root().resolve("target/launcher/gristway.jar");
      Files.createDirectories(jar.getParent());
      Files.copy(Path.of(System.getProperty("gristway.jar")), jar);
      assertThat(startWithout("GRISTWAY_JAVA_HOME=" + runtime).isDone().outText())
          .startsWith("gristway ");
    } finally {
      Commands.run("umount", seen.toString());
    }
    try (Stream<Path> inside = Files.list(seen)) {
      assertThat(inside).isEmpty();
    }
  }
}
