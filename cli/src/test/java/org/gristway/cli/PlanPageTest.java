package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.gristway.plan.policy.Policies;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;
import tools.jackson.databind.json.JsonMapper;

@Tag("java")
class PlanPageTest {

  private static final Pattern POINT = Pattern.compile("[ML](-?[\\d.]+) (-?[\\d.]+)");
  private static final Pattern AXIS = Pattern.compile("M([\\d.]+) ([\\d.]+)L([\\d.]+) \\2");

  @TempDir static Path folder;
  private static ReadDataset dataset;

  private Path pages = folder;

  @BeforeAll
  static void pack() throws IOException {
    dataset = ReadDataset.pack(folder);
  }

  @BeforeEach
  void makeFolder() throws IOException {
    pages = Files.createTempDirectory(folder, "pages");
  }

  private static Cli.Result run(Object... options) {
    return Cli.run(dataset.call("plan", options));
  }

  /** As XML, which wants every element closed. */
  private static Document parse(String html) throws Exception {
    String closed = html.replaceAll("(<meta [^>]*)>", "$1/>");
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader(closed)));
  }

  private static List<Element> elements(Document page, String name) {
    return elements(page.getElementsByTagName(name));
  }

  private static List<Element> elements(NodeList found) {
    List<Element> elements = new ArrayList<>();
    for (int i = 0; i < found.getLength(); i++) {
      elements.add((Element) found.item(i));
    }
    return elements;
  }

  private static List<String> captions(Document page) {
    return elements(page, "figcaption").stream().map(Element::getTextContent).toList();
  }

  private List<String> written() throws IOException {
    try (Stream<Path> files = Files.list(pages)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }

  @Test
  void shows_every_policy_and_needs_nothing_from_elsewhere() throws Exception {
    Path file = pages.resolve("plan.html");
    List<String> lines = run("--html", file).isDone().outText().lines().toList();
    assertThat(lines.getLast()).isEqualTo("Page with pictures: " + file);
    String html = Files.readString(file);
    assertThat(html).doesNotContain("http", "<script", "<link", "<img", "src=", "@import", "url(");
    Document page = parse(html);
    for (String policy : Policies.names()) {
      assertThat(captions(page)).as(policy).filteredOn(policy::equals).hasSize(3);
      assertThat(captions(page)).anyMatch(caption -> caption.matches(policy + ": .* at most"));
    }
    assertThat(captions(page)).contains("floor: as packed", "ceiling: full shuffle");
    assertThat(elements(page, "h1").getFirst().getTextContent())
        .isEqualTo("Plan of " + dataset.path());
    assertThat(elements(page, "th").stream().map(Element::getTextContent))
        .contains("mates", "spread", "correlation", "label entropy", "label variance");
  }

  @Test
  void every_dot_and_line_is_inside_its_plot() throws Exception {
    Path file = pages.resolve("plan.html");
    run("--html", file, "--ranks", 3, "--tail", "pad").isDone();
    int scattered = 0;
    for (Element svg : elements(parse(Files.readString(file)), "svg")) {
      List<Element> paths = elements(svg.getElementsByTagName("path"));
      MatchResult axis =
          paths.stream()
              .filter(path -> path.getAttribute("class").equals("axis"))
              .flatMap(path -> AXIS.matcher(path.getAttribute("d")).results())
              .findFirst()
              .orElseThrow();
      double bottom = Double.parseDouble(axis.group(2));
      for (Element path : paths) {
        String style = path.getAttribute("class");
        List<MatchResult> points = POINT.matcher(path.getAttribute("d")).results().toList();
        if (style.equals("dots") || (style.equals("line") && points.size() > 1)) {
          assertThat(points).isNotEmpty();
          for (MatchResult point : points) {
            assertThat(Double.parseDouble(point.group(1)))
                .isBetween(
                    Double.parseDouble(axis.group(1)) - 0.05,
                    Double.parseDouble(axis.group(3)) + 0.05);
            assertThat(Double.parseDouble(point.group(2))).isBetween(28.0, bottom + 0.05);
          }
        }
        scattered += style.equals("dots") && points.size() == ReadDataset.SAMPLES ? 1 : 0;
      }
    }
    assertThat(scattered).isEqualTo(Policies.names().size() + 2);
  }

  @Test
  void the_same_plan_is_drawn_alike() throws Exception {
    Path one = pages.resolve("one.html");
    Path other = pages.resolve("other.html");
    run("--html", one).isDone();
    run("--html", other).isDone();
    assertThat(other).hasSameBinaryContentAs(one);
  }

  @Test
  void the_page_says_how_to_make_it_again() throws Exception {
    Path first = pages.resolve("first.html");
    Object[] options = {
      "--html", first, "--ranks", 4, "--nodes", 2, "--seed", 5, "--epoch", 3, "--tail", "drop"
    };
    new Cli().call(dataset.call("plan", options)).isDone();
    String command = elements(parse(Files.readString(first)), "pre").getFirst().getTextContent();
    assertThat(command).startsWith("./gristway plan ").endsWith(" --html plan.html");
    Object[] call = command.substring("./gristway ".length()).split(" ");
    new Cli().in(pages).call(call).isDone();
    assertThat(pages.resolve("plan.html")).hasSameBinaryContentAs(first);
  }

  @Test
  void one_policy_stands_between_floor_and_ceiling() throws Exception {
    Path file = pages.resolve("redirect.html");
    String json = run("--policy", "redirect", "--json", "--html", file).isDone().outText();
    assertThat(JsonMapper.shared().readTree(json).get("policies")).hasSize(1);
    assertThat(captions(parse(Files.readString(file))).subList(0, 3))
        .containsExactly("floor: as packed", "redirect", "ceiling: full shuffle");
  }

  @Test
  void a_policy_that_cannot_plan_is_listed_with_its_reason() throws Exception {
    Path file = pages.resolve("little.html");
    run("--memory", "16KiB", "--html", file).isDone();
    Document page = parse(Files.readString(file));
    assertThat(elements(page, "li").stream().map(Element::getTextContent))
        .anyMatch(item -> item.startsWith("redirect cannot plan this: the memory is too small"));
    assertThat(captions(page)).contains("sample-order").doesNotContain("redirect");
    assertThat(
            run("--memory", "16KiB", "--policy", "redirect", "--html", pages.resolve("none"))
                .complaint(2))
        .contains("too small");
    assertThat(written()).containsExactly("little.html");
  }

  @Test
  void an_epoch_without_a_step_has_a_page_too() throws Exception {
    Path file = pages.resolve("none.html");
    run("--tail", "drop", "--batch-size", 1000, "--html", file).isDone();
    String html = Files.readString(file);
    assertThat(captions(parse(html))).contains("redirect");
    assertThat(html).doesNotContain("NaN", "Infinity");
  }

  @Test
  void the_page_replaces_an_older_one_and_leaves_nothing_beside_it() throws IOException {
    Path file = Files.writeString(pages.resolve("plan.html"), "old");
    Path link = Files.createSymbolicLink(pages.resolve("link.html"), file);
    run("--policy", "redirect", "--html", link).isDone();
    assertThat(Files.isSymbolicLink(link)).isTrue();
    assertThat(file).content().startsWith("<!DOCTYPE html>").endsWith("</html>\n");
    assertThat(written()).containsExactly("link.html", "plan.html");
    assertThat(Files.getPosixFilePermissions(file))
        .isEqualTo(
            Files.getPosixFilePermissions(Files.writeString(pages.resolve("any"), "a new file")));
  }

  @Test
  void a_full_disk_is_told_in_one_line() {
    assertThat(run("--policy", "redirect", "--html", "/dev/full").complaint(3))
        .contains("write the page to /dev/full: No space left");
  }
}
