package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("java")
class WrongCallsTest {

  @TempDir static Path folder;

  @BeforeAll
  static void makeSource() throws IOException {
    Files.createDirectories(folder.resolve("src/a"));
    Files.writeString(folder.resolve("src/a/1.txt"), "one");
    Files.createDirectory(folder.resolve("empty"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      textBlock =
          """
          ""                             | no command given; see 'gristway --help'
          pakc                           | unknown command 'pakc'; did you mean 'pack'? see 'gristway --help'
          frobnicate                     | unknown command 'frobnicate'; see 'gristway --help'
          --colour                       | unknown option '--colour'; see 'gristway --help'
          pack                           | no source and no dataset given; see 'gristway pack --help'
          pack src                       | only 'src' given, but it takes a source and a dataset; see 'gristway pack --help'
          pack --keeporder src new.gw    | unknown option '--keeporder'; did you mean '--keep-order'? see 'gristway pack --help'
          pack --parts foo src new.gw    | --parts takes nothing but 'stem', not 'foo'; see 'gristway pack --help'
          pack --seed x src new.gw       | invalid value for option '--seed': 'x' is not a whole number; see 'gristway pack --help'
          pack --chunk-size 1 src new.gw | the chunk size must be between 64KiB and 1GiB
          append --force src empty       | unknown option '--force'; see 'gristway append --help'
          ls                             | missing required parameter: 'DATASET'; see 'gristway ls --help'
          cat empty                      | missing required parameter: 'KEY'; see 'gristway cat --help'
          info empty more                | unexpected argument 'more'; see 'gristway info --help'
          """)
  void isToldInOneLineWhatIsWrong(String call, String complaint) {
    Object[] args = call.isEmpty() ? new Object[0] : call.split(" ");
    assertThat(new Cli().in(folder).call(args).complaint(2)).isEqualTo("gristway: " + complaint);
    assertThat(folder.resolve("new.gw")).doesNotExist();
  }

  @Test
  void refusesUnitsThatMeanTwoThings() {
    assertThat(new Cli().in(folder).call("pack", "--chunk-size", "64MB", "src", "n").complaint(2))
        .contains("'64MB' is not a size; write it in KiB, MiB or GiB");
  }

  @ParameterizedTest
  @ValueSource(strings = {"verify", "rebuild", "info", "ls"})
  void namesADatasetThatIsNotThere(String command) {
    assertThat(new Cli().in(folder).call(command, "nosuch.gw").complaint(2)).contains("nosuch.gw");
  }

  @Test
  void namesASourceThatIsNotThere() {
    assertThat(new Cli().in(folder).call("pack", "nosuch", "new.gw").complaint(2))
        .contains("nosuch");
  }

  @Test
  void saysThatAFolderIsNoDataset() {
    assertThat(new Cli().in(folder).call("cat", "empty", "key").complaint(2))
        .contains("empty is not a dataset");
  }

  @Test
  void refusesEmptyPaths() {
    assertThat(Cli.run("info", "").complaint(2)).contains("the path is empty");
  }

  @Test
  void staysOneLineWhateverANameHolds() {
    assertThat(Cli.run("info", "two\nlines").complaint(2)).contains("two\\nlines");
    assertThat(Cli.run("two\nlines").complaint(2)).contains("two\\nlines");
  }

  @Test
  void opensNoArgumentFiles() {
    assertThat(Cli.run("info", "@/etc/hostname").complaint(2)).contains("@/etc/hostname");
  }

  @Test
  void showsTheStackTraceToWhoeverAsks() {
    Cli.Result result = Cli.run("info", "nosuch.gw", "--debug");
    assertThat(result.exit()).isEqualTo(2);
    assertThat(result.err()).startsWith("gristway: there is no dataset").contains("\tat ");
  }
}
