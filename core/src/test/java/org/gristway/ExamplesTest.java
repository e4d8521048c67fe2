package org.gristway;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gristway.handover.Batch;
import org.gristway.pack.Packs;
import org.gristway.pack.Programs;
import org.gristway.pack.Trees;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;
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
    String output = run("ReadADataset.java", source, dataset);
    String first = Packs.keys(dataset).getFirst();
    assertThat(output.lines())
        .containsExactly(
            "packed 3 samples, 12 bytes",
            "read 12 bytes",
            "at the top: [cats/, dogs/]",
            first + " has 4 bytes and class " + (first.startsWith("cats") ? "0, cats" : "1, dogs"),
            "no/such/key is there: false");
  }

  @Test
  void training_is_fed_and_goes_on_where_it_was_stopped() {
    Path dataset =
        Packs.pack(
            Trees.of("cats/tom", "meow", "cats/kitty", "purr", "dogs/rex", "wow", "dogs/ace", ""),
            folder.resolve("dataset"));
    String output = run("TrainFromADataset.java", dataset, folder.resolve("checkpoint"));
    List<String> lines = new ArrayList<>();
    var options =
        LoaderOptions.DEFAULT.withMemory(64 << 20).withBatchSize(2).withSeed(7).withEpochs(2);
    try (Loader loader = Loader.open(dataset, options)) {
      for (int epoch = 0; epoch < 2; epoch++) {
        loader.epoch().forEach(batch -> lines.add(line(batch)));
      }
    }
    assertThat(lines).hasSize(4);
    lines.add(2, "epoch 0 has read 4 samples");
    lines.add(4, "goes on in epoch 1");
    assertThat(output.lines()).containsExactlyElementsOf(lines);
    assertThat(output)
        .contains(" cats/tom of class 0, 4 bytes;", " dogs/ace of class 1, 0 bytes;")
        .startsWith("epoch 0 step 0: ");
  }

  private static String line(Batch batch) {
    StringBuilder line = new StringBuilder();
    for (int i = 0; i < batch.size(); i++) {
      line.append(
          String.format(
              " %s of class %d, %d bytes;", batch.key(i), batch.label(i), batch.length(i)));
    }
    return String.format("epoch %d step %d:%s", batch.epoch(), batch.step(), line);
  }

  /** Runs an example as its users do; returns what it printed. */
  private String run(String example, Path... arguments) {
    String root = System.getProperty("gristway.root", "..");
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("--enable-native-access=ALL-UNNAMED");
    command.add("-Dstdout.encoding=UTF-8");
    command.add("-cp");
    command.add(
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")));
    command.add(Path.of(root).toAbsolutePath() + "/examples/java/" + example);
    for (Path argument : arguments) {
      command.add(argument.toString());
    }
    return Programs.run(folder, command.toArray(String[]::new));
  }
}
