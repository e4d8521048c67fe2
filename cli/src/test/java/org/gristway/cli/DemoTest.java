package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.xml.sax.InputSource;

@Tag("java")
class DemoTest {

  private static final Pattern SVG = Pattern.compile("<svg .*?</svg>", Pattern.DOTALL);

  @TempDir static Path temporary;

  private static String out = "";
  private static Path folder = Path.of("");
  private static String report = "";

  @TempDir Path own;

  @BeforeAll
  static void run() throws Exception {
    folder = temporary.resolve("demo");
    out = Cli.run("demo", "--files", 1000, folder).isDone().outText();
    report = Files.readString(folder.resolve("report.html"));
  }

  @Test
  void shows_what_each_step_came_to() {
    assertThat(out)
        .contains("1. Make files", "1,000 pictures in 5 classes")
        .contains("2. Pack", "1,000 samples in 1 chunk")
        .contains("3. Verify", "every checksum holds")
        .contains("4. List", "200 samples in stripes/: stripes/0000.png with label 4")
        .contains("5. Read a sample", "checks/0007.png has the same bytes as its file")
        .contains("6. Read it three ways", "from cold storage", "a tenth of the data");
  }

  @Test
  void ends_with_a_table_the_stalls_and_the_path_of_the_report() {
    List<String> rows =
        out.lines().filter(line -> line.matches("   (files|sample-order|redirect).*\\d")).toList();
    assertThat(rows).hasSize(3);
    assertThat(rows.get(0))
        .matches(
            "   files one by one +[\\d,]+ +\\d+ +\\d+\\.\\d\\d +\\d+\\.\\d %"
                + " +- +\\d+\\.\\d\\d");
    assertThat(rows.get(1)).startsWith("   sample-order ").contains(" MiB ");
    assertThat(rows.get(2)).startsWith("   redirect ").contains(" MiB ");
    assertThat(out).contains("The trainer waited for data ", "with redirect (");
    assertThat(out).contains("Report with pictures: " + folder.resolve("report.html") + "\n");
  }

  @Test
  void every_way_reads_every_sample() {
    assertThat(report).doesNotContain("stopped early");
    // The trainer has checked each one's bytes, and that none came twice.
    assertThat(report).containsPattern("files one by one</th>(<td>[^<]*</td>){5}<td>1,000</td>");
    assertThat(report).containsPattern("sample-order</th>(<td>[^<]*</td>){5}<td>1,000</td>");
    assertThat(report).containsPattern("redirect</th>(<td>[^<]*</td>){5}<td>\\d\\d</td>");
  }

  @Test
  void suggests_commands_that_work() {
    List<String> advice =
        out.lines().map(String::strip).filter(line -> line.startsWith("./gristway ")).toList();
    assertThat(advice).anyMatch(line -> line.startsWith("./gristway read "));
    assertThat(advice).anyMatch(line -> line.startsWith("./gristway plan "));
    assertThat(advice).hasSize(6);
    for (String line : advice) {
      String call = line.substring("./gristway ".length()).replaceAll(" [|>].*", "");
      assertThat(new Cli().call((Object[]) call.split(" ")).isDone().out()).isNotEmpty();
    }
  }

  @Test
  void the_report_needs_nothing_else() {
    assertThat(report)
        .startsWith("<!DOCTYPE html>")
        .doesNotContain("http:", "https:", "//", "src=", "href=", "url(", "@import", "<script")
        .contains("prefers-color-scheme:dark", "width=device-width");
  }

  @Test
  void the_report_has_all_its_parts() {
    assertThat(report)
        .contains(">Speed</h2>", ">Over the epoch</h2>", ">Shuffle</h2>")
        .contains(">Labels in a batch</h2>", ">What was run</h2>", ">When it does not help</h2>")
        .contains("Samples delivered, in thousands", "Memory in use, MiB", "budget")
        .contains("mate ratio", "spread", "extents in a batch", "by chance")
        .contains("./gristway read " + folder.resolve("shapes.gw"));
  }

  @Test
  void the_reports_pictures_are_well_formed() throws Exception {
    List<String> pictures = SVG.matcher(report).results().map(match -> match.group()).toList();
    assertThat(pictures).hasSize(12);
    for (String picture : pictures) {
      String root =
          DocumentBuilderFactory.newInstance()
              .newDocumentBuilder()
              .parse(new InputSource(new StringReader(picture)))
              .getDocumentElement()
              .getTagName();
      assertThat(root).isEqualTo("svg");
      assertThat(picture).doesNotContain("NaN", "Infinity");
    }
  }

  @Test
  void makes_nothing_in_a_folder_that_is_not_empty() throws Exception {
    Files.createFile(own.resolve("mine"));
    assertThat(Cli.run("demo", own).complaint(2)).contains("is not empty");
    assertThat(Cli.run("demo", own.resolve("mine")).complaint(2)).contains("is a file");
  }

  @ParameterizedTest
  @ValueSource(strings = {"999", "50001", "-1", "many"})
  void refuses_numbers_of_files_that_it_does_not_work_with(String number) {
    Path target = own.resolve("demo");
    assertThat(Cli.run("demo", "--files", number, target).complaint(2)).contains(number);
    assertThat(target).doesNotExist();
  }
}
