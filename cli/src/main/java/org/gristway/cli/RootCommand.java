package org.gristway.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.gristway.Failure;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;

/** Finds the command that the arguments ask for, and runs it. */
@Command(
    name = "gristway",
    versionProvider = RootCommand.ManifestVersion.class,
    synopsisSubcommandLabel = "COMMAND",
    commandListHeading = "%nCommands:%n",
    description = {
      "Packs small files into large checksummed chunks, and feeds training from them: each byte read"
          + " once an epoch, in a random order, inside a fixed memory."
    },
    footer = {
      "",
      "'gristway COMMAND --help' tells more of each. Sizes are written as 64KiB, 64MiB or 1GiB.",
      "With --debug, every command shows the stack trace of what went wrong.",
      "",
      "Exit codes: 0 done; 1 data damaged or incomplete; 2 the call is wrong or names",
      "nothing that exists; 3 the surroundings (space, permission, memory); 70 a bug;",
      "130 interrupted.",
      "",
      "Example: gristway demo"
    })
final class RootCommand {

  private static final List<String> NAMES =
      List.of(
          "pack",
          "append",
          "verify",
          "rebuild",
          "info",
          "ls",
          "cat",
          "unpack",
          "place",
          "read",
          "plan",
          "simulate",
          "probe",
          "serve",
          "stat",
          "demo");

  @Option(
      names = {"-V", "--version"},
      versionHelp = true,
      description = "Show the version.")
  boolean version;

  private RootCommand() {}

  /**
   * Runs what the arguments ask for and returns its exit code.
   *
   * @throws Failure if they ask for nothing that there is
   */
  static int run(Console console, String[] args) throws IOException {
    CommandLine root = commandLine(console, args);
    try {
      ParseResult parsed = root.parseArgs(args);
      if (CommandLine.executeHelpRequest(parsed) != null) {
        return CliCommand.DONE;
      }
      if (!parsed.hasSubcommand()) {
        throw new ParameterException(root, "no command given");
      }
      return ((CliCommand) parsed.subcommand().commandSpec().userObject()).run();
    } catch (ParameterException wrong) {
      throw Failure.wrongCall("%s", WrongUsage.describe(wrong, NAMES));
    }
  }

  private static CommandLine commandLine(Console console, String[] args) {
    CommandLine root = new CommandLine(new RootCommand());
    for (String name : wanted(args)) {
      CommandLine command = new CommandLine(create(name, console));
      command.addMixin("shared", new Shared());
      root.addSubcommand(name, command);
    }
    root.addMixin("shared", new Shared());
    // Names are taken as they are: no "@file" is opened, no quotes are taken off.
    root.setExpandAtFiles(false);
    root.setTrimQuotes(false);
    root.setColorScheme(Help.defaultColorScheme(Help.Ansi.OFF));
    root.setOut(new PrintWriter(console.out(), false, StandardCharsets.UTF_8));
    root.registerConverter(Path.class, RootCommand::path);
    root.registerConverter(long.class, RootCommand::number);
    root.registerConverter(Long.class, RootCommand::number);
    root.registerConverter(int.class, RootCommand::smallNumber);
    root.registerConverter(Integer.class, RootCommand::smallNumber);
    return root;
  }

  /** The command that is named, or all: reading the annotations of each takes its time. */
  private static List<String> wanted(String[] args) {
    for (String arg : args) {
      if (!arg.startsWith("-")) {
        return NAMES.contains(arg) ? List.of(arg) : NAMES;
      }
    }
    return NAMES;
  }

  private static CliCommand create(String name, Console console) {
    return switch (name) {
      case "pack" -> new PackCommand(console);
      case "append" -> new AppendCommand(console);
      case "verify" -> new VerifyCommand(console);
      case "rebuild" -> new RebuildCommand(console);
      case "info" -> new InfoCommand(console);
      case "ls" -> new LsCommand(console);
      case "cat" -> new CatCommand(console);
      case "unpack" -> new UnpackCommand(console);
      case "place" -> new PlaceCommand(console);
      case "read" -> new ReadCommand(console);
      case "plan" -> new PlanCommand(console);
      case "simulate" -> new SimulateCommand(console);
      case "probe" -> new ProbeCommand(console);
      case "serve" -> new ServeCommand(console);
      case "stat" -> new StatCommand(console);
      case "demo" -> new DemoCommand(console);
      default -> throw new IllegalArgumentException(name);
    };
  }

  /** Java takes an empty path for the working folder, which nobody means who writes "$UNSET". */
  private static Path path(String text) {
    if (text.isEmpty()) {
      throw new CommandLine.TypeConversionException("the path is empty (is a variable not set?)");
    }
    return Path.of(text);
  }

  private static long number(String text) {
    try {
      return Long.parseLong(text);
    } catch (NumberFormatException odd) {
      throw new CommandLine.TypeConversionException("'" + text + "' is not a whole number");
    }
  }

  private static int smallNumber(String text) {
    long number = number(text);
    if (number != (int) number) {
      throw new CommandLine.TypeConversionException("'" + text + "' is too large a number");
    }
    return (int) number;
  }

  /** The version that {@code --version} shows. */
  static final class ManifestVersion implements IVersionProvider {
    @Override
    public String[] getVersion() {
      return new String[] {Version.text()};
    }
  }
}
