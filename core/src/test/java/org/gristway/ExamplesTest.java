package org.gristway;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.gristway.pack.Packs;
import org.gristway.pack.Programs;
import org.gristway.pack.Trees;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The examples do what they say, run as their users run them. */
@Tag("java")
class ExamplesTest {

  @TempDir Path folder;

  @Test
  void a_dataset_is_packed_and_read() {
    Path source =
        Trees.write(
            Trees.of("cats/tom.txt", "meow", "cats/kitty.txt", "purr", "dogs/rex.txt", "woof"),
            folder.resolve("source"));
    Path dataset = folder.resolve("dataset");
    String root = System.getProperty("gristway.root", "..");
    String output =
        Programs.run(
            folder,
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "-Dstdout.encoding=UTF-8",
            "-cp",
            System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
            Path.of(root).toAbsolutePath() + "/examples/java/ReadADataset.java",
            source.toString(),
            dataset.toString());
    String first = Packs.keys(dataset).getFirst();
    assertThat(output.lines())
        .containsExactly(
            "packed 3 samples, 12 bytes",
            "read 12 bytes",
            "at the top: [cats/, dogs/]",
            first + " has 4 bytes and class " + (first.startsWith("cats") ? "0, cats" : "1, dogs"),
            "no/such/key is there: false");
  }
}
