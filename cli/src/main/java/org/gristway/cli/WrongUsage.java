package org.gristway.cli;

import java.util.List;
import java.util.Optional;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/** Says in one line what is wrong with a call, and what may have been meant. */
final class WrongUsage {

  private WrongUsage() {}

  /**
   * Describes it.
   *
   * @param commands the names of all commands there are
   */
  static String describe(ParameterException wrong, List<String> commands) {
    CommandLine command = wrong.getCommandLine();
    boolean isRoot = command.getParent() == null;
    String what = decapitalize(String.valueOf(wrong.getMessage()).lines().findFirst().orElse(""));
    Optional<String> meant = Optional.empty();
    if (wrong instanceof UnmatchedArgumentException unmatched) {
      String argument = unmatched.getUnmatched().getFirst();
      if (unmatched.isUnknownOption()) {
        what = "unknown option '" + argument + "'";
        meant = Nearest.of(name(argument), optionNames(command));
      } else if (isRoot) {
        what = "unknown command '" + argument + "'";
        meant = Nearest.of(argument, commands);
      } else {
        what = "unexpected argument '" + argument + "'";
      }
    }
    return what
        + meant.map(name -> "; did you mean '" + name + "'?").orElse(";")
        + " see '"
        + command.getCommandSpec().qualifiedName()
        + " --help'";
  }

  private static String name(String option) {
    int value = option.indexOf('=');
    return value < 0 ? option : option.substring(0, value);
  }

  private static List<String> optionNames(CommandLine command) {
    return command.getCommandSpec().options().stream()
        .filter(option -> !option.hidden())
        .map(CommandLine.Model.OptionSpec::longestName)
        .toList();
  }

  private static String decapitalize(String message) {
    return message.isEmpty()
        ? "the call cannot be understood"
        : Character.toLowerCase(message.charAt(0)) + message.substring(1);
  }
}
