package org.gristway.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.engine.TestTag;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;

/**
 * Writes what ran and what was skipped, by tag, into the folder named by the system property {@code
 * gristway.tags}; without that property (as in an editor) it writes nothing.
 *
 * <p>JUnit tells of a skipped class, or of one whose set-up gave up, once for the whole class; this
 * counts each test in it, so that the table does not make much skipped work look like one test.
 */
public final class TagListener implements TestExecutionListener {
  /** One JVM may run several test plans, and each writes its own file. */
  private static final AtomicInteger PLANS = new AtomicInteger();

  private final @Nullable Path folder;
  private TagTally tally = new TagTally();
  private final Set<String> counted = new HashSet<>();
  private @Nullable TestPlan plan;

  /** The listener that JUnit makes. */
  public TagListener() {
    this(System.getProperty("gristway.tags") instanceof String name ? Path.of(name) : null);
  }

  TagListener(@Nullable Path folder) {
    this.folder = folder;
  }

  @Override
  public synchronized void testPlanExecutionStarted(TestPlan started) {
    plan = started;
    tally = new TagTally();
    counted.clear();
  }

  @Override
  public synchronized void executionSkipped(TestIdentifier test, String reason) {
    skipAllIn(test, reason);
  }

  @Override
  public synchronized void executionFinished(TestIdentifier test, TestExecutionResult result) {
    if (result.getStatus() == Status.ABORTED) {
      skipAllIn(test, result.getThrowable().map(TagListener::reason).orElse("no reason given"));
    } else if (test.isTest()) {
      count(test);
      tally.ran(name(test), tags(test), result.getStatus() == Status.FAILED);
    }
    // A container that failed fails the build without the table's help.
  }

  @Override
  public synchronized void testPlanExecutionFinished(TestPlan finished) {
    if (folder == null) {
      return;
    }
    String name = "java-" + ProcessHandle.current().pid() + "-" + PLANS.incrementAndGet() + ".tsv";
    try {
      Files.createDirectories(folder);
      Files.write(folder.resolve(name), tally.lines());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void skipAllIn(TestIdentifier test, String reason) {
    for (TestIdentifier each : Stream.concat(Stream.of(test), descendants(test)).toList()) {
      if (isCounted(each) && count(each)) {
        tally.skipped(name(each), tags(each), reason);
      }
    }
  }

  /**
   * A test, or a method that would have made tests had it been run, such as a parameterized one: it
   * counts as one, since nobody knows how many it would have made.
   */
  private boolean isCounted(TestIdentifier test) {
    return test.isTest()
        || (test.getSource().orElse(null) instanceof MethodSource
            && descendants(test).findAny().isEmpty());
  }

  private boolean count(TestIdentifier test) {
    return counted.add(test.getUniqueId());
  }

  private Stream<TestIdentifier> descendants(TestIdentifier test) {
    return plan == null ? Stream.empty() : plan.getDescendants(test).stream();
  }

  /** The tags of a test and all it is in: dynamic tests have none of their own. */
  private Set<String> tags(TestIdentifier test) {
    return lineage(test)
        .flatMap(each -> each.getTags().stream())
        .map(TestTag::getName)
        .collect(Collectors.toSet());
  }

  /** The name of the method that is the test or made it, for someone who looks for its source. */
  private String name(TestIdentifier test) {
    return lineage(test)
        .flatMap(each -> each.getSource().stream())
        .filter(MethodSource.class::isInstance)
        .map(MethodSource.class::cast)
        .map(source -> source.getClassName() + "." + source.getMethodName())
        .findFirst()
        .orElse(test.getUniqueId());
  }

  private Stream<TestIdentifier> lineage(TestIdentifier test) {
    return Stream.iterate(
            Optional.of(test), Optional::isPresent, each -> each.flatMap(this::parent))
        .flatMap(Optional::stream);
  }

  private Optional<TestIdentifier> parent(TestIdentifier test) {
    return plan == null ? Optional.empty() : plan.getParent(test);
  }

  private static String reason(Throwable aborted) {
    String message = aborted.getMessage();
    return message == null ? "no reason given" : message.replaceFirst("^Assumption failed: ", "");
  }
}
