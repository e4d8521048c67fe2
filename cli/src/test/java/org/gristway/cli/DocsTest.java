package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the documents say is run, or compared with what it speaks of, so that it cannot rot. */
@Tag("java")
class DocsTest {

  private static final Path ROOT = Path.of(System.getProperty("gristway.root"));

  @TempDir Path folder;

  @Test
  void the_commands_in_the_readme_work() throws Exception {
    Path launcher = folder.resolve("gristway");
    String java = String.join(" ", new Cli().builder().command());
    Files.writeString(launcher, "#!/bin/sh\nexec %s \"$@\"\n".formatted(java));
    Files.setPosixFilePermissions(launcher, PosixFilePermissions.fromString("rwxr-xr-x"));
    String script = String.join("\n", blocks("README.md", "sh"));
    assertThat(script).contains("./gristway pack");
    Process process =
        new ProcessBuilder("bash", "-euo", "pipefail", "-c", script)
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    assertThat(output).contains("ok: ").contains("ring/0042.png").contains("a picture");
  }

  @Test
  void the_java_in_the_readme_is_the_example_that_the_tests_run() throws Exception {
    StringBuilder examples = new StringBuilder();
    try (Stream<Path> files = Files.list(ROOT.resolve("examples/java"))) {
      for (Path file : files.sorted().toList()) {
        examples.append(squeeze(Files.readString(file))).append('\n');
      }
    }
    List<String> blocks = blocks("README.md", "java");
    assertThat(blocks).isNotEmpty();
    for (String block : blocks) {
      assertThat(examples.toString()).contains(squeeze(block));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"chunk/ChunkFormat", "snapshot/SnapshotFormat", "dataset/Portion"})
  void a_format_is_drawn_alike_in_the_docs_and_on_its_class(String type) throws Exception {
    String source =
        Files.readString(ROOT.resolve("core/src/main/java/org/gristway/" + type + ".java"));
    Matcher drawing = Pattern.compile("<pre>\n(.*?) \\* </pre>", Pattern.DOTALL).matcher(source);
    assertThat(drawing.find()).isTrue();
    String plain = drawing.group(1).replaceAll("(?m)^ \\* ?", "").stripTrailing();
    assertThat(Files.readString(ROOT.resolve("docs/formats.md"))).contains(plain);
  }

  @Test
  void links_in_the_documents_lead_somewhere() throws Exception {
    List<Path> documents = new ArrayList<>();
    for (String name : List.of("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "THIRD-PARTY.md")) {
      documents.add(ROOT.resolve(name));
    }
    try (Stream<Path> more = Files.walk(ROOT.resolve("docs"))) {
      more.filter(path -> path.toString().endsWith(".md")).forEach(documents::add);
    }
    Pattern link = Pattern.compile("]\\(([^)#\\s]+)(#[^)]*)?\\)");
    for (Path document : documents) {
      Matcher matcher = link.matcher(Files.readString(document));
      while (matcher.find()) {
        if (!matcher.group(1).startsWith("http")) {
          assertThat(document.resolveSibling(matcher.group(1))).as("in %s", document).exists();
        }
      }
    }
  }

  /** A row without a test, or one whose test was renamed or lost, promises more than is held. */
  @Test
  void every_promise_names_tests_that_there_are() throws Exception {
    Map<String, String> sources = new TreeMap<>();
    for (String folder : List.of("core", "node", "simulator", "cli", "testing", "python/tests")) {
      try (Stream<Path> files = Files.walk(ROOT.resolve(folder))) {
        for (Path file : files.filter(DocsTest::isTestSource).toList()) {
          sources.put(file.getFileName().toString(), Files.readString(file));
        }
      }
    }
    int rows = 0;
    for (String line : Files.readAllLines(ROOT.resolve("docs/promises.md"))) {
      if (line.startsWith("|---") || !line.startsWith("|") || line.endsWith("| test |")) {
        continue;
      }
      rows++;
      List<String> missing = new ArrayList<>();
      Matcher name = Pattern.compile("`([^`]+)`").matcher(line.substring(line.lastIndexOf("| ")));
      int names = 0;
      while (name.find()) {
        names++;
        if (!isThere(name.group(1), sources)) {
          missing.add(name.group(1));
        }
      }
      assertThat(names).as("tests of the row: %s", line).isPositive();
      assertThat(missing).as("tests that are not there, of the row: %s", line).isEmpty();
    }
    assertThat(rows).isGreaterThan(60);
  }

  private static boolean isTestSource(Path file) {
    String path = ROOT.relativize(file).toString();
    return path.contains("src/test/java") && path.endsWith(".java") && !path.startsWith("target")
        || path.startsWith("python/tests/test_") && path.endsWith(".py");
  }

  /**
   * Says whether a test is in {@code sources}: {@code SomeTest}, {@code SomeTest.method}, {@code
   * test_some.py}, {@code test_some_*.py} or {@code test_some.py::test_function}.
   */
  private static boolean isThere(String name, Map<String, String> sources) {
    boolean python = name.contains(".py");
    String[] parts = name.split(python ? "::" : "\\.", 2);
    Pattern file =
        Pattern.compile(
            python ? parts[0].replace(".", "\\.").replace("*", ".*") : parts[0] + "\\.java");
    return sources.entrySet().stream()
        .filter(source -> file.matcher(source.getKey()).matches())
        .anyMatch(
            source ->
                parts.length == 1
                    || source.getValue().contains((python ? "def " : "void ") + parts[1] + "("));
  }

  @Test
  void every_environment_variable_that_is_read_is_documented() throws Exception {
    String page = Files.readString(ROOT.resolve("docs/environment.md"));
    List<Path> sources = new ArrayList<>(List.of(ROOT.resolve("gristway"), ROOT.resolve("build")));
    for (String folder :
        List.of("core/src/main", "node/src/main", "cli/src/main", "python/src", "scripts")) {
      try (Stream<Path> files = Files.walk(ROOT.resolve(folder))) {
        files
            .filter(Files::isRegularFile)
            .filter(file -> !file.toString().endsWith(".pyc"))
            .forEach(sources::add);
      }
    }
    Pattern variable = Pattern.compile("GRISTWAY_[A-Z_]+");
    for (Path source : sources) {
      Matcher matcher = variable.matcher(Files.readString(source));
      while (matcher.find()) {
        assertThat(page).as("read in %s", source).contains(matcher.group());
      }
    }
  }

  private static List<String> blocks(String document, String language) throws IOException {
    List<String> blocks = new ArrayList<>();
    Matcher matcher =
        Pattern.compile("```" + language + "\n(.*?)```", Pattern.DOTALL)
            .matcher(Files.readString(ROOT.resolve(document)));
    while (matcher.find()) {
      blocks.add(matcher.group(1));
    }
    return blocks;
  }

  private static String squeeze(String code) {
    return code.replaceAll("\\s+", " ").strip();
  }
}
