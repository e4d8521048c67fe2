package org.gristway.cli;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads the size of extents: "auto" is {@link #AUTO}, anything else is a size. */
final class ExtentSize implements ITypeConverter<Long> {

  /** What suits the memory. */
  static final long AUTO = 0;

  @Override
  public Long convert(String text) {
    if (text.equalsIgnoreCase("auto")) {
      return AUTO;
    }
    long bytes = new ByteSize().convert(text);
    if (bytes == 0) {
      throw new TypeConversionException("'" + text + "' is nothing; give a size or 'auto'");
    }
    return bytes;
  }
}
