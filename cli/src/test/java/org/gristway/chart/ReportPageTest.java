package org.gristway.chart;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class ReportPageTest {

  @Test
  void all_text_is_escaped() {
    String odd = "<i a=\"b\">&'";
    String html =
        new ReportPage(odd)
            .lead(odd)
            .heading(odd)
            .text(odd)
            .pair(new ReportPage.Figure("<svg></svg>", odd))
            .three(new ReportPage.Figure("<svg></svg>", odd))
            .table(List.of(odd), List.of(List.of(odd, odd)))
            .wordTable(List.of(), List.of(List.of(odd)))
            .list(List.of(odd))
            .commands(List.of(odd))
            .html();
    assertThat(html).doesNotContain("<i a", "&'");
    assertThat(html.split("&lt;i a=&quot;b&quot;&gt;&amp;&#39;", -1)).hasSize(14);
    assertThat(html).endsWith("</body>\n</html>\n");
  }

  @Test
  void has_every_colour_for_light_and_for_dark_pages() {
    String html = new ReportPage("").html();
    for (ChartColor color : ChartColor.values()) {
      assertThat(html).contains(color.variable() + ":" + color.light() + ";");
      assertThat(html).contains(color.variable() + ":" + color.dark() + ";");
    }
  }

  @Test
  void no_line_begins_with_a_percent_sign() {
    assertThat(new ReportPage("").text("by 5 % more").html()).contains("by 5\u00a0% more");
  }
}
