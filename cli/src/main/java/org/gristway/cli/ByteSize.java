package org.gristway.cli;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * Reads sizes such as 64MiB. KB and MB are refused rather than guessed at: to some they are powers
 * of ten, to others of two, and a chunk size decides what is written for good.
 */
final class ByteSize implements ITypeConverter<Long> {

  private static final Pattern SIZE = Pattern.compile("(\\d{1,18})\\s*(b|kib|mib|gib)?");

  @Override
  public Long convert(String text) {
    Matcher size = SIZE.matcher(text.toLowerCase(Locale.ROOT));
    if (!size.matches()) {
      throw new TypeConversionException(
          "'" + text + "' is not a size; write it in KiB, MiB or GiB, as in 64MiB, or in bytes");
    }
    String unit = size.group(2) == null ? "b" : size.group(2);
    int shift =
        switch (unit) {
          case "kib" -> 10;
          case "mib" -> 20;
          case "gib" -> 30;
          default -> 0;
        };
    try {
      return Math.multiplyExact(Long.parseLong(size.group(1)), 1L << shift);
    } catch (ArithmeticException overflow) {
      throw new TypeConversionException("'" + text + "' is too large a size");
    }
  }
}
