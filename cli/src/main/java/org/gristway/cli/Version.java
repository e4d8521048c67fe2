package org.gristway.cli;

/** Which Gristway this is, and on which Java. */
final class Version {

  private Version() {}

  /** One line; the number is the manifest's, so that the pom is the only place that has it. */
  static String text() {
    String version = Main.class.getPackage().getImplementationVersion();
    return String.format(
        "gristway %s (Java %s)",
        version == null ? "(unpackaged)" : version, System.getProperty("java.version"));
  }
}
