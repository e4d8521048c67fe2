package org.gristway.chart;

/** The style sheet of pictures: their colours by day and by night, and what is drawn how. */
final class ChartStyle {

  /** Colours of the page and of what is drawn on it, as variables. */
  static final String COLORS =
      """
      :root{color-scheme:light dark;--ink:#1c1c1c;--soft:#5c5c5c;--page:#fff;--panel:#f5f5f2;--rule:#dcdcd6;%s}
      @media (prefers-color-scheme:dark){:root{--ink:#e9e9e6;--soft:#a9a9a4;--page:#161616;--panel:#212120;--rule:#3a3a38;%s}}
      """
          .formatted(colors(true), colors(false));

  static final String RULES =
      """
      svg text{font:13px system-ui,sans-serif;fill:var(--ink)}
      svg .number{fill:var(--soft)}
      svg .label{font-weight:600}
      .grid,.axis{fill:none;stroke:var(--rule)}
      .axis{stroke:var(--soft)}
      .line{fill:none;stroke:var(--c);stroke-width:2.5;stroke-linejoin:round}
      .dots{fill:none;stroke:var(--c);stroke-width:2.4;stroke-linecap:round}
      .large{stroke-width:7}
      .area{fill:var(--c)}
      """;

  private ChartStyle() {}

  private static String colors(boolean light) {
    StringBuilder colors = new StringBuilder();
    for (ChartColor color : ChartColor.values()) {
      colors.append(color.variable()).append(':');
      colors.append(light ? color.light() : color.dark()).append(';');
    }
    return colors.toString();
  }
}
