package org.gristway.cli;

import java.util.Arrays;
import org.gristway.plan.Homes;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads who reads an extent, in any case. */
final class HomesName implements ITypeConverter<Homes> {

  @Override
  public Homes convert(String text) {
    return Arrays.stream(Homes.values())
        .filter(homes -> homes.name().equalsIgnoreCase(text))
        .findFirst()
        .orElseThrow(
            () ->
                new TypeConversionException("'" + text + "' is none of afresh, hashed and placed"));
  }
}
