package org.gristway.chart;

/** How charts look, by day and by night: what a page or a picture has in its style sheet. */
final class ChartStyle {

  private static final String CSS =
      """
      :root{color-scheme:light dark;--ink:#1c1c1c;--soft:#5c5c5c;--page:#fff;--panel:#f5f5f2;--rule:#dcdcd6;%s}
      @media (prefers-color-scheme:dark){:root{--ink:#e9e9e6;--soft:#a9a9a4;--page:#161616;--panel:#212120;--rule:#3a3a38;%s}}
      svg text{font:13px system-ui,sans-serif;fill:var(--ink)}
      svg .number{fill:var(--soft)}
      svg .label{font-weight:600}
      .grid,.axis{fill:none;stroke:var(--rule)}
      .axis{stroke:var(--soft)}
      .line{fill:none;stroke:var(--c);stroke-width:2.5;stroke-linejoin:round}
      .dots{fill:none;stroke:var(--c);stroke-width:2.4;stroke-linecap:round}
      .area{fill:var(--c)}
      """;

  private ChartStyle() {}

  static String css() {
    StringBuilder light = new StringBuilder();
    StringBuilder dark = new StringBuilder();
    for (ChartColor color : ChartColor.values()) {
      light.append(color.variable()).append(':').append(color.light()).append(';');
      dark.append(color.variable()).append(':').append(color.dark()).append(';');
    }
    return CSS.formatted(light, dark);
  }
}
