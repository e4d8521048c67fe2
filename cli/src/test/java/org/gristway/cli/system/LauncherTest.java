package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.gristway.cli.Cli;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;

/** The script at the top of a checkout, which builds what it runs. One build serves all tests. */
@Tag("java")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class LauncherTest {

  private static final String BUILDING = "gristway: building (first use)…\n";

  @TempDir static Path folder;

  private static Checkout checkout;
  private static final List<Cli.Result> STARTED = new ArrayList<>();

  @BeforeAll
  static void startEightAtOnce() throws Exception {
    checkout = Checkout.into(folder.resolve("checkout"));
    List<Process> processes = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      processes.add(Checkout.bare(folder, List.of(), checkout.launcher(), "--version").start());
    }
    for (Process process : processes) {
      STARTED.add(Checkout.await(process));
    }
  }

  private static Cli.Result call(Object... args) throws Exception {
    Object[] command = new Object[args.length + 1];
    command[0] = checkout.launcher();
    System.arraycopy(args, 0, command, 1, args.length);
    return Checkout.call(folder, List.of("LC_ALL=C"), command);
  }

  @Test
  void eightFirstStartsAtOnceBuildOnceAndAllSucceed() {
    assertThat(STARTED).hasSize(8).allMatch(result -> result.exit() == 0);
    assertThat(STARTED)
        .extracting(Cli.Result::outText)
        .allMatch(out -> out.startsWith("gristway "));
    assertThat(STARTED).filteredOn(result -> result.err().equals(BUILDING)).hasSize(1);
    assertThat(STARTED).filteredOn(result -> result.err().isEmpty()).hasSize(7);
  }

  @Test
  void buildsNothingTwice() throws Exception {
    call("--version").isDone();
    assertThat(Trees.names(checkout.root().resolve("target/launcher")))
        .contains("gristway.jar", "gristway.aot")
        .doesNotContain("new");
  }

  @Test
  void packsNamesOfAllScriptsWithNextToNoEnvironment() throws Exception {
    List<String> keys =
        List.of("Кириллица/буква", "latin/naïve", "العربية/حرف", "हिन्दी/अक्षर", "漢字/日本", "🌻/🌹");
    Path source = folder.resolve("source");
    for (String key : keys) {
      Files.createDirectories(source.resolve(key).getParent());
      Files.writeString(source.resolve(key), key);
    }
    Path dataset = folder.resolve("數據.gw");
    assertThat(call("pack", source, dataset).isDone().outText()).contains(dataset.toString());
    assertThat(call("ls", dataset).isDone().outText().lines())
        .containsExactlyInAnyOrderElementsOf(keys);
    for (String key : keys.subList(0, Thorough.count(1, keys.size()))) {
      assertThat(call("cat", dataset, key).isDone().outText()).isEqualTo(key);
    }
    Path unpacked = folder.resolve("ausgepackt-ß");
    call("unpack", dataset, unpacked).isDone();
    assertThat(unpacked.resolve("漢字/日本")).hasContent("漢字/日本");
    assertThat(call("cat", dataset, "漢字/日木").complaint(2)).contains("漢字/日木", "漢字/日本");
  }

  @Test
  void runsThroughLinksFromAnywhere() throws Exception {
    Path elsewhere = Files.createDirectories(folder.resolve("else where"));
    Files.createSymbolicLink(elsewhere.resolve("straight"), checkout.launcher());
    Files.createSymbolicLink(elsewhere.resolve("gw"), Path.of("straight"));
    String version = STARTED.getFirst().outText();
    assertThat(Checkout.call(elsewhere, List.of(), "./gw", "--version").isDone().outText())
        .isEqualTo(version);
    assertThat(
            Checkout.call(elsewhere, List.of("PATH=.:" + System.getenv("PATH")), "gw", "--version")
                .isDone()
                .outText())
        .isEqualTo(version);
    assertThat(
            Checkout.call(checkout.root(), List.of(), "bash", "gristway", "--version")
                .isDone()
                .outText())
        .isEqualTo(version);
  }

  @Test
  void passesOnExitCodesAndJavaOptions() throws Exception {
    assertThat(call("info", folder.resolve("nosuch.gw")).complaint(2)).contains("nosuch.gw");
    Cli.Result result =
        Checkout.call(
            folder,
            List.of("GRISTWAY_JAVA_OPTS=-Xmx64m  -XX:+PrintFlagsFinal"),
            checkout.launcher(),
            "--version");
    assertThat(result.exit()).isZero();
    assertThat(result.outText()).containsPattern("MaxHeapSize\\s+= 67108864 ");
  }

  @Test
  void demoLeavesNothingOutsideTheFolderThatItNames() throws Exception {
    Path home = Files.createDirectories(folder.resolve("demo/home"));
    Path work = Files.createDirectories(folder.resolve("demo/work"));
    Path temporary = Files.createDirectories(folder.resolve("demo/tmp"));
    List<String> environment =
        List.of(
            "HOME=" + home,
            "TMPDIR=" + temporary,
            "GRISTWAY_JAVA_OPTS=-Djava.io.tmpdir=" + temporary);
    String out =
        Checkout.call(work, environment, checkout.launcher(), "demo", "--files", "1000")
            .isDone()
            .outText();
    List<String> made = Trees.names(temporary);
    assertThat(made).hasSize(1);
    Path named = temporary.resolve(made.getFirst());
    assertThat(out).contains("A demo of Gristway in " + named + "\n", "rm -r " + named + "\n");
    assertThat(Trees.names(home)).isEmpty();
    assertThat(Trees.names(work)).isEmpty();
    assertThat(Trees.names(named)).containsExactly("report.html", "shapes", "shapes.gw");

    if (Thorough.on()) {
      Trees.delete(named);
      Checkout.call(work, environment, checkout.launcher(), "demo", "--files", "1000", "my demo")
          .isDone();
      assertThat(Trees.names(temporary)).isEmpty();
      assertThat(Trees.names(home)).isEmpty();
      assertThat(Trees.names(work)).containsExactly("my demo");
    }
  }

  @Test
  void namesMavenWhereItIsMissing() throws Exception {
    Path fresh = Files.createDirectories(folder.resolve("no-maven"));
    Checkout other = Checkout.into(fresh.resolve("checkout"));
    Path tools =
        Checkout.tools(
            fresh.resolve("bin"),
            "env",
            "bash",
            "readlink",
            "dirname",
            "find",
            "flock",
            "mkdir",
            "rm",
            "cp",
            "mv");
    Cli.Result result =
        Checkout.call(
            fresh,
            List.of("PATH=" + tools, "GRISTWAY_JAVA_HOME=" + System.getProperty("java.home")),
            other.launcher(),
            "--version");
    assertThat(result.complaint(3)).contains("no Maven 3.8 or newer here: install it");

    // An old one, or one that does not start, is none.
    Path mvn = tools.resolve("mvn");
    Files.writeString(mvn, "#!/bin/sh\necho 'Apache Maven 3.6.3'\n");
    assertThat(mvn.toFile().setExecutable(true)).isTrue();
    result =
        Checkout.call(
            fresh,
            List.of("PATH=" + tools, "GRISTWAY_JAVA_HOME=" + System.getProperty("java.home")),
            other.launcher(),
            "--version");
    assertThat(result.complaint(3)).contains("no Maven 3.8 or newer here: install it");
    Trees.delete(tools); // or JUnit would warn of its links
  }

  @Test
  void namesTheLogOfABuildThatFails() throws Exception {
    Path fresh = Files.createDirectories(folder.resolve("failing"));
    Checkout other = Checkout.into(fresh.resolve("checkout"));
    Path tools = Files.createDirectories(fresh.resolve("bin"));
    writeMaven(tools, "echo BROKEN; exit 1");
    Cli.Result result =
        Checkout.call(
            fresh,
            List.of("PATH=" + tools + ":" + System.getenv("PATH")),
            other.launcher(),
            "--version");
    Path log = other.root().resolve("target/launcher/build.log");
    assertThat(result.exit()).isEqualTo(3);
    assertThat(result.out()).isEmpty();
    assertThat(result.err())
        .isEqualTo(BUILDING + "gristway: the build failed; its log is " + log + "\n");
    assertThat(log).hasContent("BROKEN");
  }

  /** A Maven that is new enough, and does this where it should build. */
  private static void writeMaven(Path tools, String script) throws IOException {
    Path mvn = tools.resolve("mvn");
    Files.writeString(
        mvn, "#!/bin/sh\n[ $1 = -v ] && echo 'Apache Maven 3.9.9' && exit\n" + script + "\n");
    assertThat(mvn.toFile().setExecutable(true)).isTrue();
  }

  /** Last, as it makes everything stale. */
  @Test
  @Order(Integer.MAX_VALUE)
  void buildsAgainWhenASourceIsTouched() throws Exception {
    Path source = checkout.root().resolve("cli/src/main/java/org/gristway/cli/Main.java");
    Files.setLastModifiedTime(source, FileTime.from(Instant.now()));
    Path tools = Files.createDirectories(folder.resolve("again"));
    if (!Thorough.on()) {
      // One that builds nothing: the jar that was built first is still there.
      writeMaven(tools, "echo BUILT AGAIN");
    }
    Cli.Result result =
        Checkout.call(
            folder,
            List.of("PATH=" + tools + ":" + System.getenv("PATH")),
            checkout.launcher(),
            "--version");
    if (!Thorough.on()) {
      assertThat(checkout.root().resolve("target/launcher/build.log"))
          .content()
          .startsWith("BUILT AGAIN\n");
    }
    assertThat(result.err()).isEqualTo("gristway: building (sources changed)…\n");
    assertThat(result.exit()).isZero();
    assertThat(result.outText()).isEqualTo(STARTED.getFirst().outText());
    call("--version").isDone();
  }
}
