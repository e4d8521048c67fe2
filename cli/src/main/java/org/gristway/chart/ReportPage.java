package org.gristway.chart;

import java.util.List;

/**
 * A page of HTML that needs nothing else: no script, no font, no picture from elsewhere. It can be
 * read on a phone, and by day and by night. All text is escaped.
 */
public final class ReportPage {

  private static final String STYLE =
      """
      body{margin:0 auto;padding:1rem 1rem 3rem;max-width:64rem;background:var(--page);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
      h1{font-size:1.6rem;line-height:1.2;margin:.5rem 0}
      h2{font-size:1.2rem;margin:2.2rem 0 .4rem}
      p,li{max-width:46rem}
      p{margin:.5rem 0}
      .lead{font-size:1.2rem}
      .single,.pair,.three{display:grid;gap:1.2rem;margin:1rem 0}
      .pair{grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr))}
      .three{grid-template-columns:repeat(auto-fill,minmax(min(100%,18rem),1fr))}
      figure{margin:0;padding:.8rem;background:var(--panel);border-radius:.5rem}
      figcaption{font-size:.9rem;color:var(--soft);margin-top:.4rem}
      .wide{overflow-x:auto}
      table{border-collapse:collapse;margin:.8rem 0;font-size:.95rem}
      th,td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--rule);text-align:right;vertical-align:top}
      th:first-child,td:first-child,.words td:last-child,.words th:last-child{text-align:left}
      td,th{white-space:nowrap}
      .words td:last-child{white-space:normal;min-width:14rem}
      thead th{color:var(--soft);font-weight:600}
      tbody th{font-weight:400}
      pre{background:var(--panel);padding:.8rem;border-radius:.5rem;overflow-x:auto;font-size:.9rem}
      svg{display:block;width:100%;height:auto;margin:0 auto}
      """;

  private final StringBuilder html = new StringBuilder();

  public ReportPage(String title) {
    html.append("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.append("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    html.append("<title>").append(escape(title)).append("</title>\n");
    html.append("<style>\n").append(ChartStyle.COLORS).append(STYLE).append(ChartStyle.RULES);
    html.append("</style>\n");
    html.append("</head>\n<body>\n");
    element("h1", title);
  }

  /** What the page comes to, in a sentence. */
  public ReportPage lead(String text) {
    html.append("<p class=\"lead\">").append(escape(text)).append("</p>\n");
    return this;
  }

  public ReportPage heading(String text) {
    return element("h2", text);
  }

  public ReportPage text(String text) {
    return element("p", text);
  }

  private ReportPage element(String name, String text) {
    html.append('<').append(name).append('>').append(escape(text));
    html.append("</").append(name).append(">\n");
    return this;
  }

  /** A picture and what it shows. */
  public record Figure(String svg, String caption) {}

  /** A picture that needs all the room. */
  public ReportPage wide(Figure figure) {
    return figures("single", figure);
  }

  /** Pictures beside each other, two where there is room. */
  public ReportPage pair(Figure... figures) {
    return figures("pair", figures);
  }

  /** Pictures beside each other, three where there is room. */
  public ReportPage three(Figure... figures) {
    return figures("three", figures);
  }

  private ReportPage figures(String style, Figure... figures) {
    html.append("<div class=\"").append(style).append("\">\n");
    for (Figure figure : figures) {
      html.append("<figure>\n").append(figure.svg());
      html.append("<figcaption>").append(escape(figure.caption()));
      html.append("</figcaption>\n</figure>\n");
    }
    html.append("</div>\n");
    return this;
  }

  /** A table of numbers; the first cell of a row names it. */
  public ReportPage table(List<String> head, List<List<String>> rows) {
    return table("", head, rows);
  }

  /** A table whose last column is of words. */
  public ReportPage wordTable(List<String> head, List<List<String>> rows) {
    return table(" class=\"words\"", head, rows);
  }

  private ReportPage table(String style, List<String> head, List<List<String>> rows) {
    html.append("<div class=\"wide\"><table").append(style).append(">\n");
    if (!head.isEmpty()) {
      html.append("<thead><tr>");
      for (String cell : head) {
        html.append("<th scope=\"col\">").append(escape(cell)).append("</th>");
      }
      html.append("</tr></thead>\n");
    }
    html.append("<tbody>\n");
    for (List<String> row : rows) {
      html.append("<tr><th scope=\"row\">").append(escape(row.getFirst()));
      html.append("</th>");
      for (String cell : row.subList(1, row.size())) {
        html.append("<td>").append(escape(cell)).append("</td>");
      }
      html.append("</tr>\n");
    }
    html.append("</tbody></table></div>\n");
    return this;
  }

  public ReportPage list(List<String> items) {
    html.append("<ul>\n");
    for (String item : items) {
      element("li", item);
    }
    html.append("</ul>\n");
    return this;
  }

  /** Lines for a shell. */
  public ReportPage commands(List<String> lines) {
    return element("pre", String.join("\n", lines));
  }

  private static String escape(String text) {
    return ChartSvg.escape(text.replace(" %", "\u00a0%")); // no line begins with a percent sign
  }

  /** The page. */
  public String html() {
    return html + "</body>\n</html>\n";
  }
}
