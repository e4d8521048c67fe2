package org.gristway.chart;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.StringReader;
import java.util.List;
import java.util.Random;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;

@Tag("java")
class ChartTest {

  private static final Pattern POINT = Pattern.compile("[ML](-?[\\d.]+) (-?[\\d.]+)");

  private static Element parse(String svg) throws Exception {
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader(svg)))
        .getDocumentElement();
  }

  private static List<MatchResult> points(Element svg, String style) {
    NodeList paths = svg.getElementsByTagName("path");
    for (int i = paths.getLength() - 1; i >= 0; i--) {
      Element path = (Element) paths.item(i);
      if (path.getAttribute("class").equals(style)) {
        return POINT.matcher(path.getAttribute("d")).results().toList();
      }
    }
    throw new AssertionError("no " + style);
  }

  @Test
  void every_point_is_inside_the_plot_and_every_text_inside_the_picture() throws Exception {
    Random random = new Random(Seeds.of("ChartTest"));
    for (int trial = 0; trial < 50; trial++) {
      double high = Math.pow(10, random.nextInt(-3, 9)) * (1 + random.nextDouble());
      double[] xs = random.doubles(100, -1, 5).toArray();
      double[] ys = random.doubles(100, -0.2 * high, 1.2 * high).toArray();
      Chart chart =
          new Chart(
              random.nextInt(300, 600),
              300,
              "a chart",
              new ChartAxis("seconds", 0, 1 + 3 * random.nextDouble()),
              ChartAxis.upTo("amount", high));
      String svg =
          chart
              .line("a line", ChartColor.BLUE, "4 2", xs, ys)
              .level("a level", ChartColor.GREY, high)
              .dots(ChartColor.ORANGE, xs, ys)
              .columns("some columns", ChartColor.GREEN, 0.1, xs, ys)
              .svg();
      Element root = parse(svg);
      Chart.Plot plot = chart.plot();
      String[] box = root.getAttribute("viewBox").split(" ");
      assertThat(plot.right()).isLessThan(Double.parseDouble(box[2]));
      assertThat(plot.bottom()).isLessThan(Double.parseDouble(box[3]));
      for (MatchResult point : points(root, "dots")) {
        assertThat(Double.parseDouble(point.group(1)))
            .isBetween(plot.left() - 0.05, plot.right() + 0.05);
        assertThat(Double.parseDouble(point.group(2)))
            .isBetween(plot.top() - 0.05, plot.bottom() + 0.05);
      }
      assertThat(points(root, "dots")).hasSize(100);
      assertTextsInside(root);
    }
  }

  private static void assertTextsInside(Element svg) {
    String[] box = svg.getAttribute("viewBox").split(" ");
    NodeList texts = svg.getElementsByTagName("text");
    for (int i = 0; i < texts.getLength(); i++) {
      Element text = (Element) texts.item(i);
      double width = ChartSvg.width(text.getTextContent());
      double x = Double.parseDouble(text.getAttribute("x"));
      double left =
          switch (text.getAttribute("text-anchor")) {
            case "middle" -> x - width / 2;
            case "end" -> x - width;
            default -> x;
          };
      assertThat(left).as(text.getTextContent()).isGreaterThanOrEqualTo(-0.1);
      assertThat(left + width)
          .as(text.getTextContent())
          .isLessThanOrEqualTo(Double.parseDouble(box[2]) + 0.1);
      assertThat(Double.parseDouble(text.getAttribute("y")))
          .isBetween(10.0, Double.parseDouble(box[3]));
    }
  }

  @Test
  void a_line_ends_at_what_is_no_number_and_begins_again_behind_it() throws Exception {
    double none = Double.NaN;
    Chart chart =
        new Chart(200, 200, "", new ChartAxis("x", 0, 1), new ChartAxis("y", 0, 1))
            .line("two", ChartColor.BLUE, "", new double[] {0, 1, none, 0, 1}, new double[5])
            .dots("three", ChartColor.GREEN, new double[] {0, 0.5, 1}, new double[3]);
    Element svg = parse(chart.svg());
    NodeList paths = svg.getElementsByTagName("path");
    String line = ((Element) paths.item(paths.getLength() - 2)).getAttribute("d");
    assertThat(line).matches("M[^ML]+L[^ML]+M[^ML]+L[^ML]+");
    assertThat(points(svg, "dots large")).hasSize(3);
    assertThat(svg.getTextContent()).contains("two", "three");
  }

  @Test
  void a_picture_can_stand_in_a_file_of_its_own() throws Exception {
    Chart chart =
        new Chart(200, 100, "a & b", new ChartAxis("x", 0, 1), new ChartAxis("y", 0, 1))
            .level("level", ChartColor.BLUE, 0.5);
    String text = PictureFile.of(chart.svg());
    assertThat(text)
        .startsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 200 100\"");
    Element svg = parse(text);
    assertThat(svg.getAttribute("aria-label")).isEqualTo("a & b");
    String style = svg.getElementsByTagName("style").item(0).getTextContent();
    assertThat(style).contains("--blue:#0072b2;", "--blue:#56b4e9;", ".line{");
  }

  @Test
  void bars_fill_their_room_by_their_share_and_show_their_values() throws Exception {
    Element svg =
        parse(
            ChartBars.svg(
                "amount",
                200,
                List.of(
                    new ChartBars.Bar("all", ChartColor.BLUE, 200, "200"),
                    new ChartBars.Bar("a quarter", ChartColor.ORANGE, 50, "50"),
                    new ChartBars.Bar("too much", ChartColor.GREEN, 500, "500 and more"))));
    NodeList boxes = svg.getElementsByTagName("rect"); // a track, its bar, the next track, …
    double room = Double.parseDouble(((Element) boxes.item(0)).getAttribute("width"));
    double[] parts = {1, 0.25, 1};
    for (int i = 0; i < parts.length; i++) {
      double width = Double.parseDouble(((Element) boxes.item(2 * i + 1)).getAttribute("width"));
      assertThat(width).isBetween(parts[i] * room - 0.2, parts[i] * room + 0.2);
    }
    assertThat(svg.getTextContent()).contains("a quarter", "500 and more");
    assertTextsInside(svg);
  }

  @Test
  void strips_fill_the_whole_width_and_no_more() throws Exception {
    double[][] shares = {{0.5, 0.5}, {1, 0}, {0.25, 0.75}};
    Element svg =
        parse(
            ChartStrips.svg(
                "labels",
                "first",
                "last",
                List.of(
                    new ChartStrips.Part("a", ChartColor.BLUE),
                    new ChartStrips.Part("b", ChartColor.ORANGE)),
                List.of(new ChartStrips.Strip("a strip", shares))));
    NodeList paths = svg.getElementsByTagName("path");
    assertThat(paths.getLength()).isEqualTo(2);
    assertThat(((Element) paths.item(0)).getAttribute("d"))
        .isEqualTo("M0 68H160V94H0ZM160 68H320V120H160ZM320 68H480V81H320Z");
    assertThat(((Element) paths.item(1)).getAttribute("d"))
        .isEqualTo("M0 94H160V120H0ZM320 81H480V120H320Z");
    assertTextsInside(svg);
  }

  @Test
  void text_means_nothing_but_itself() throws Exception {
    String odd = "<script>\"a\" & 'b' \u0000\u001b\ud83d\ude00</script>";
    String escaped = ChartSvg.escape(odd);
    assertThat(escaped)
        .isEqualTo(
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39; \ufffd\ufffd\ud83d\ude00&lt;/script&gt;");
    Element svg = parse(ChartBars.svg(odd, 1, List.of()));
    assertThat(svg.getTextContent()).contains("<script>\"a\" & 'b'");
    assertThat(svg.getAttribute("aria-label")).startsWith("<script>");
  }

  @ParameterizedTest
  @CsvSource({
    "0, 50, '0 10 20 30 40 50'",
    "0, 5.42, '0 1 2 3 4 5'",
    "0, 0.9, '0.0 0.2 0.4 0.6 0.8'",
    "0, 50000, '0 10,000 20,000 30,000 40,000 50,000'",
    "0.1, 0.13, '0.100 0.105 0.110 0.115 0.120 0.125 0.130'",
    "-1, 1, '-1.0 -0.5 0.0 0.5 1.0'"
  })
  void ticks_are_round_and_few(double low, double high, String texts) {
    ChartAxis axis = new ChartAxis("", low, high);
    List<String> ticks = axis.ticks().stream().map(axis::text).toList();
    assertThat(String.join(" ", ticks)).isEqualTo(texts);
  }

  @Test
  void an_axis_ends_at_a_tick_and_has_a_length() {
    assertThat(ChartAxis.upTo("", 54.5).high()).isEqualTo(60);
    assertThat(ChartAxis.upTo("", 50).high()).isEqualTo(50);
    assertThat(ChartAxis.upTo("", 0).high()).isEqualTo(1);
    assertThatThrownBy(() -> new ChartAxis("", 1, 1)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void an_axis_of_powers_gives_equal_ratios_equal_lengths() {
    ChartAxis nodes = ChartAxis.ofPowers("", 4, 1, 1_024);
    assertThat(nodes.ticks()).containsExactly(1.0, 4.0, 16.0, 64.0, 256.0, 1_024.0);
    assertThat(nodes.text(1_024)).isEqualTo("1,024");
    assertThat(nodes.part(4)).isEqualTo(0.2, within(1e-12));
    assertThat(nodes.part(0)).isZero();
    ChartAxis seconds = ChartAxis.ofPowers("", 10, 0.03, 7);
    assertThat(seconds.low()).isEqualTo(0.01, within(1e-12));
    assertThat(seconds.high()).isEqualTo(10);
    assertThat(seconds.text(seconds.ticks().getFirst())).isEqualTo("0.01");
    assertThat(ChartAxis.ofPowers("", 10, 10, 10).high()).isEqualTo(100);
    assertThat(nodes.text(0.25)).isEqualTo("0.25");
    assertThat(nodes.text(0.0625)).isEqualTo("0.063");
    assertThatThrownBy(() -> new ChartAxis("", 0, 1, 10))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
