package org.gristway.simulator;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.gristway.Failure;

/** The scenarios that come along. */
public final class Scenarios {

  private static final List<String> NAMES =
      List.of(
          "nopfs-1", "nopfs-2", "nopfs-3", "nopfs-4", "imagenet-1k", "imagenet-21k", "librispeech");

  private Scenarios() {}

  public static List<String> names() {
    return NAMES;
  }

  /** The text of a scenario. */
  public static String text(String name) {
    if (!NAMES.contains(name)) {
      throw Failure.wrongCall("there is no scenario '%s'; there are %s", name, NAMES);
    }
    try (InputStream in = Scenarios.class.getResourceAsStream(name + ".scenario")) {
      if (in == null) {
        throw new IllegalStateException("scenario " + name + " is missing");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  public static Scenario named(String name) {
    return Scenario.parse(text(name), "scenario " + name);
  }
}
