package org.gristway.chart;

import java.util.Locale;

/**
 * The colours of charts, told apart by colour-blind readers too (after Okabe and Ito), each in a
 * shade for light pages and one for dark ones. A page names them in its style sheet.
 */
public enum ChartColor {
  BLUE("#0072b2", "#56b4e9"),
  ORANGE("#d98200", "#f0a830"),
  PURPLE("#b0508a", "#e08cbd"),
  GREEN("#00835f", "#2fc79b"),
  YELLOW("#c9b800", "#f0e442"),
  GREY("#6b6b6b", "#a8a8a8"),
  /** Of what a bar could fill. */
  TRACK("#e2e2dc", "#373735");

  private final String light;
  private final String dark;

  ChartColor(String light, String dark) {
    this.light = light;
    this.dark = dark;
  }

  String light() {
    return light;
  }

  String dark() {
    return dark;
  }

  /** Its variable in the style sheet. */
  String variable() {
    return "--" + name().toLowerCase(Locale.ROOT);
  }

  /** The value of a colour attribute. */
  String use() {
    return "var(" + variable() + ")";
  }
}
