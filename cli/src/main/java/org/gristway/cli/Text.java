package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.gristway.Failure;

/** How numbers and names are written. */
final class Text {

  private static final String[] UNITS = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

  private Text() {}

  /** Such as "1 sample" or "1,000 samples". */
  static String count(long number, String thing) {
    return number(number) + " " + thing + (number == 1 ? "" : "s");
  }

  /** Such as "1 class" or "10 classes". */
  static String classes(long number) {
    return number(number) + (number == 1 ? " class" : " classes");
  }

  static String number(long number) {
    return String.format(Locale.ROOT, "%,d", number);
  }

  /** Such as "812 bytes" or "10.2 MiB". */
  static String bytes(double bytes) {
    if (bytes < 1024) {
      return count(Math.round(bytes), "byte");
    }
    int unit = -1;
    double value = bytes;
    do {
      value /= 1024;
      unit++;
    } while (value >= 1023.95 && unit < UNITS.length - 1); // or it would be shown as 1024.0
    return String.format(Locale.ROOT, "%.1f %s", value, UNITS[unit]);
  }

  /** Such as "0.52 s". */
  static String seconds(long nanos) {
    return String.format(Locale.ROOT, "%.2f s", nanos / 1e9);
  }

  /** A name that may hold anything, on one line and in one column of a listing. */
  static String escape(String name) {
    return Failure.oneLine(name.replace("\\", "\\\\").replace("\r", "\\r"));
  }

  /** Writes a name in UTF-8 as {@link #escape} does, without making a string of it. */
  static void writeEscaped(byte[] name, OutputStream out) throws IOException {
    int start = 0;
    for (int i = 0; i < name.length; i++) {
      int length = isControl(name[i]) || name[i] == '\\' ? 1 : isHighControl(name, i) ? 2 : 0;
      if (length > 0) {
        out.write(name, start, i - start);
        write(escape(new String(name, i, length, StandardCharsets.UTF_8)), out);
        start = i + length;
        i = start - 1;
      }
    }
    out.write(name, start, name.length - start);
  }

  private static boolean isControl(byte b) {
    return (b >= 0 && b < ' ') || b == 0x7f;
  }

  /** The control characters from U+0080 to U+009F, which some terminals obey too. */
  private static boolean isHighControl(byte[] name, int at) {
    return name[at] == (byte) 0xc2 && at + 1 < name.length && name[at + 1] < (byte) 0xa0;
  }

  static void write(String text, OutputStream out) throws IOException {
    out.write(text.getBytes(StandardCharsets.UTF_8));
  }

  /** A message that stays one line whatever names it holds. */
  static String oneLine(String message) {
    return Failure.oneLine(message);
  }

  /** A path as a shell takes it, in one piece. */
  static String shellQuote(String path) {
    return path.matches("[\\w@%+=:,./-]+") ? path : "'" + path.replace("'", "'\\''") + "'";
  }
}
