package org.gristway.cli;

import java.util.Arrays;
import org.gristway.plan.Tail;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads what becomes of the tail, in any case. */
final class TailName implements ITypeConverter<Tail> {

  @Override
  public Tail convert(String text) {
    return Arrays.stream(Tail.values())
        .filter(tail -> tail.name().equalsIgnoreCase(text))
        .findFirst()
        .orElseThrow(
            () -> new TypeConversionException("'" + text + "' is none of short, drop and pad"));
  }
}
