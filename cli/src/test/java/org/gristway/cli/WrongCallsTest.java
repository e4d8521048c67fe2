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
    Cli.run("pack", folder.resolve("src"), folder.resolve("data.gw")).isDone();
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
          read --batch-size 0 empty      | --batch-size must be 1 or more, not 0; see 'gristway read --help'
          read --batch-size 3e3 empty    | invalid value for option '--batch-size': '3e3' is not a whole number; see 'gristway read --help'
          read --batch-size 3000000000 e | invalid value for option '--batch-size': '3000000000' is too large a number; see 'gristway read --help'
          read --epochs 0 empty          | --epochs must be 1 or more, not 0; see 'gristway read --help'
          read --ranks 0 empty           | --ranks must be 1 or more, not 0; see 'gristway read --help'
          read --threads 0 empty         | --threads must be 1 to 4096, not 0; see 'gristway read --help'
          read --memory 0 empty          | invalid value for option '--memory': '0' is nothing; give it some; see 'gristway read --help'
          read --memory 0.0% empty       | invalid value for option '--memory': '0.0%' is nothing; give it some; see 'gristway read --help'
          read --memory x% empty         | invalid value for option '--memory': 'x%' is not a percentage; write it in digits, as in 10% or 2.5%; see 'gristway read --help'
          read --extent 0 empty          | invalid value for option '--extent': '0' is nothing; give a size or 'auto'; see 'gristway read --help'
          read --extent 5000 data.gw     | an extent must be a multiple of 4KiB and at most 1GiB, not 5000 bytes
          read --tail long empty         | invalid value for option '--tail': 'long' is none of short, drop and pad; see 'gristway read --help'
          read --policy x data.gw        | there is no policy 'x'; there are [sample-order, chunk-shuffle, redirect, redirect-position, clairvoyant, clairvoyant-next-use, locality, unbounded]
          read --order - --json data.gw  | --order - and --json would both go to standard output: name a file; see 'gristway read --help'
          plan --policy x data.gw        | there is no policy 'x'; there are [sample-order, chunk-shuffle, redirect, redirect-position, clairvoyant, clairvoyant-next-use, locality, unbounded]
          plan --epochs 2 data.gw        | unknown option '--epochs'; did you mean '--epoch'? see 'gristway plan --help'
          plan --epoch -1 data.gw        | --epoch must be 0 or more, not -1; see 'gristway plan --help'
          plan --epoch 9223372036854775807 data.gw | there is no epoch after 9223372036854775807 to compare with; see 'gristway plan --help'
          plan --html empty data.gw      | cannot write the page to empty: it is a folder; name a file
          plan --html no/a.html data.gw  | cannot write the page to no/a.html: its folder does not exist; make it first
          plan --nodes 0 data.gw         | --nodes must be 1 or more, not 0; see 'gristway plan --help'
          plan --order o data.gw         | --order is about one policy: name it with --policy; see 'gristway plan --help'
          plan --recommend data.gw       | --recommend needs --step-time, what training on one batch takes; see 'gristway plan --help'
          plan --step-time 1s data.gw    | --step-time and --probe are for --recommend; see 'gristway plan --help'
          plan --recommend --step-time 1MB data.gw                    | --step-time: '1MB' is not a time (like 25ms, 0.4s)
          plan --recommend --step-time 0 data.gw                      | --step-time: '0' is not a time (like 25ms, 0.4s)
          plan --recommend --step-time soon data.gw                   | --step-time: 'soon' is not a time (like 25ms, 0.4s)
          plan --recommend --step-time 1s --probe nosuch data.gw      | there is no file nosuch: 'gristway probe DIR --json' prints one
          plan --recommend --step-time 1s --epoch 2 data.gw           | --order, --epoch and --html are about a plan, not for --recommend; see 'gristway plan --help'
          plan --recommend --step-time 1s --ranks 3 --nodes 2 data.gw | --recommend needs as many ranks on each node as on the others; see 'gristway plan --help'
          plan --recommend --step-time 1s --policy locality data.gw   | --recommend tries [sample-order, unbounded, redirect, chunk-shuffle], not 'locality'
          stat 1 2                       | unexpected argument '2'; see 'gristway stat --help'
          """)
  void isToldInOneLineWhatIsWrong(String call, String complaint) {
    Object[] args = call.isEmpty() ? new Object[0] : inFolder(call).split(" ");
    assertThat(Cli.run(args).complaint(2)).isEqualTo("gristway: " + inFolder(complaint));
    assertThat(folder.resolve("new.gw")).doesNotExist();
  }

  /** Names what there is, and what might be made, with its folder. */
  private static String inFolder(String text) {
    return text.replaceAll("\\b(src|empty|data\\.gw|new\\.gw)\\b", folder + "/$1");
  }

  @Test
  void refusesUnitsThatMeanTwoThings() {
    assertThat(Cli.run("pack", "--chunk-size", "64MB", "src", "n").complaint(2))
        .contains("'64MB' is not a size; write it in KiB, MiB or GiB");
  }

  @ParameterizedTest
  @ValueSource(strings = {"verify", "rebuild", "info", "ls", "read", "plan"})
  void namesADatasetThatIsNotThere(String command) {
    assertThat(Cli.run(command, "nosuch.gw").complaint(2)).contains("nosuch.gw");
  }

  @Test
  void namesASourceThatIsNotThere() {
    assertThat(Cli.run("pack", "nosuch", folder.resolve("new.gw")).complaint(2)).contains("nosuch");
  }

  @Test
  void saysThatAFolderIsNoDataset() {
    assertThat(Cli.run("cat", folder.resolve("empty"), "key").complaint(2))
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
