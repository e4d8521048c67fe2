package org.gristway.cli;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;

/** The gristway command's entry point. */
@Command(
    name = "gristway",
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class,
    description = "Packs small files into checksummed chunks and feeds them to training jobs.")
public final class Main implements Runnable {
  /** Runs the command and exits with its status. */
  public static void main(String[] args) {
    System.exit(new CommandLine(new Main()).execute(args));
  }

  @Override
  public void run() {
    CommandLine.usage(this, System.out);
  }

  /** Reads the version from the jar's manifest, so that the pom is the only place that has it. */
  static final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
      String version = Main.class.getPackage().getImplementationVersion();
      return new String[] {"gristway " + (version == null ? "(unpackaged)" : version)};
    }
  }
}
