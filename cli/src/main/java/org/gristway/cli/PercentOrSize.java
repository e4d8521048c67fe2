package org.gristway.cli;

import java.math.BigDecimal;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * A size, or a percentage of the dataset's bytes: policies are compared at equal percentages. It is
 * computed exactly, because the order hangs on every byte of the memory.
 *
 * @param bytes the size, or 0 if it is a percentage
 * @param percent the percentage, or 0
 */
record PercentOrSize(long bytes, BigDecimal percent) {

  private static final Pattern PERCENTAGE = Pattern.compile("(\\d{1,6}(?:\\.\\d{1,6})?)\\s*%");

  static PercentOrSize ofBytes(long bytes) {
    return new PercentOrSize(bytes, BigDecimal.ZERO);
  }

  /** The size in bytes; fractions of a byte are left out. */
  long of(long datasetBytes) {
    return percent.signum() == 0
        ? bytes
        : percent.multiply(BigDecimal.valueOf(datasetBytes)).movePointLeft(2).longValue();
  }

  /** Reads it. */
  static final class Converter implements ITypeConverter<PercentOrSize> {

    @Override
    public PercentOrSize convert(String text) {
      Matcher percentage = PERCENTAGE.matcher(text);
      PercentOrSize value =
          percentage.matches()
              ? new PercentOrSize(0, new BigDecimal(percentage.group(1)))
              : size(text);
      if (value.bytes == 0 && value.percent.signum() == 0) {
        throw new TypeConversionException("'" + text + "' is nothing; give it some");
      }
      return value;
    }

    private static PercentOrSize size(String text) {
      if (text.contains("%")) {
        throw new TypeConversionException(
            "'" + text + "' is not a percentage; write it in digits, as in 10% or 2.5%");
      }
      return ofBytes(new ByteSize().convert(text));
    }
  }
}
