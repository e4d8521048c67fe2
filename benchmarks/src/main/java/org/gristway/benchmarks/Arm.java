package org.gristway.benchmarks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Something that is measured several times, and what its rounds gave. */
final class Arm {

  /** Measures once. */
  interface Round {
    Map<String, Double> measure() throws IOException, InterruptedException;
  }

  final String name;
  private final Round round;
  private final Map<String, List<Double>> values = new HashMap<>();

  Arm(String name, Round round) {
    this.name = name;
    this.round = round;
  }

  void measure() throws IOException, InterruptedException {
    round
        .measure()
        .forEach((key, value) -> values.computeIfAbsent(key, _ -> new ArrayList<>()).add(value));
  }

  double median(String value) {
    return Machine.median(values.getOrDefault(value, List.of(Double.NaN)));
  }

  String spread(String value, String format) {
    return Machine.spread(values.getOrDefault(value, List.of()), format);
  }

  /** The arm's own name=value line. */
  static Map<String, Double> parse(String output) {
    Map<String, Double> parsed = new HashMap<>();
    for (String line : output.split("\n")) {
      for (String field : line.split(" ")) {
        int equals = field.indexOf('=');
        if (equals > 0) {
          parsed.put(field.substring(0, equals), Double.parseDouble(field.substring(equals + 1)));
        }
      }
    }
    return parsed;
  }

  /**
   * A command that runs this benchmark's program again as an arm, with the product's JVM options.
   */
  static List<String> command(String... arguments) {
    List<String> command =
        new ArrayList<>(
            List.of(
                ProcessHandle.current().info().command().orElseThrow(),
                "-Xmx256m",
                "-Xss512k",
                "-XX:+UseSerialGC",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                Main.class.getName()));
    command.addAll(List.of(arguments));
    return command;
  }

  /** A value that an arm has given. */
  static double value(Map<String, Double> values, String name) {
    return values.getOrDefault(name, Double.NaN);
  }
}
