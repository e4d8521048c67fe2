package org.gristway.chart;

import java.util.Locale;

/**
 * Writes one picture as SVG, to stand in a page of HTML: its texts and lines take their looks from
 * the page's style sheet.
 */
final class ChartSvg {

  /** What a letter or digit of 13 pixels takes in a wide font. */
  private static final double LETTER = 8.3;

  private final StringBuilder svg = new StringBuilder();

  /**
   * @param description what can be seen, for those who cannot
   */
  ChartSvg(int width, int height, String description) {
    svg.append(
        String.format(
            Locale.ROOT,
            "<svg viewBox=\"0 0 %d %d\" style=\"max-width:%dpx\" role=\"img\" aria-label=\"%s\">\n",
            width,
            height,
            width,
            escape(description)));
  }

  /** Where a text stands to its point. */
  enum Anchor {
    START,
    MIDDLE,
    END
  }

  ChartSvg text(double x, double y, Anchor anchor, String style, String text) {
    svg.append("<text x=\"").append(number(x)).append("\" y=\"").append(number(y));
    if (anchor != Anchor.START) {
      svg.append("\" text-anchor=\"").append(anchor.name().toLowerCase(Locale.ROOT));
    }
    svg.append("\" class=\"").append(style).append("\">").append(escape(text)).append("</text>\n");
    return this;
  }

  ChartSvg line(double x1, double y1, double x2, double y2, String style) {
    svg.append("<path class=\"").append(style).append("\" d=\"M").append(number(x1)).append(' ');
    svg.append(number(y1)).append('L').append(number(x2)).append(' ').append(number(y2));
    svg.append("\"/>\n");
    return this;
  }

  ChartSvg box(double x, double y, double width, double height, ChartColor color) {
    svg.append("<rect x=\"").append(number(x)).append("\" y=\"").append(number(y));
    svg.append("\" width=\"").append(number(width)).append("\" height=\"").append(number(height));
    svg.append("\" fill=\"").append(color.use()).append("\"/>\n");
    return this;
  }

  /**
   * @param path in SVG's path language
   * @param style a class of the style sheet, by which it is a line, dots or an area
   * @param dashes such as "6 3", or empty for a whole line
   */
  ChartSvg path(CharSequence path, ChartColor color, String style, String dashes) {
    svg.append("<path class=\"").append(style).append("\" style=\"--c:").append(color.use());
    svg.append('"');
    if (!dashes.isEmpty()) {
      svg.append(" stroke-dasharray=\"").append(dashes).append('"');
    }
    svg.append(" d=\"").append(path).append("\"/>\n");
    return this;
  }

  /** The picture. */
  String end() {
    return svg + "</svg>\n";
  }

  /** The room that a text may take, at most. */
  static double width(String text) {
    return LETTER * text.length();
  }

  /** A coordinate, to a tenth. */
  static String number(double value) {
    long tenths = Math.round(value * 10);
    return tenths % 10 == 0
        ? Long.toString(tenths / 10)
        : (tenths < 0 ? "-" : "") + Math.abs(tenths) / 10 + "." + Math.abs(tenths) % 10;
  }

  /** Text that means nothing but itself, in elements and in quoted attributes. */
  static String escape(String text) {
    StringBuilder escaped = new StringBuilder(text.length());
    text.codePoints()
        .forEach(
            c -> {
              switch (c) {
                case '&' -> escaped.append("&amp;");
                case '<' -> escaped.append("&lt;");
                case '>' -> escaped.append("&gt;");
                case '"' -> escaped.append("&quot;");
                case '\'' -> escaped.append("&#39;");
                default -> {
                  boolean known = c >= 0x20 ? c < 0xd800 || c > 0xdfff : c == '\n' || c == '\t';
                  escaped.appendCodePoint(known && c != 0xfffe && c != 0xffff ? c : 0xfffd);
                }
              }
            });
    return escaped.toString();
  }
}
