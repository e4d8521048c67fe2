package org.gristway.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Lets tests run for root on Linux only. */
final class RootOnLinux implements ExecutionCondition {
  private static final Path SELF = Path.of("/proc/self");

  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    if (!System.getProperty("os.name").equals("Linux") || !Files.exists(SELF)) {
      return ConditionEvaluationResult.disabled("needs Linux");
    }
    return isRoot()
        ? ConditionEvaluationResult.enabled("root on Linux")
        : ConditionEvaluationResult.disabled("needs root");
  }

  /** The owner of this folder is the process's effective user, whatever it is called. */
  private static boolean isRoot() {
    try {
      return Files.getAttribute(SELF, "unix:uid").equals(0);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
