package org.gristway.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.junit.platform.launcher.core.LauncherConfig;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

@Tag("java")
class TagListenerTest {
  @TempDir Path folder;

  @Test
  void failedTestsAreAmongThoseThatRan() {
    assertThat(linesOf(OneFails.class)).containsExactly("torch\t2\t1\t0\t");
  }

  @Test
  void everyInvocationCounts() {
    assertThat(linesOf(Invocations.class)).containsExactly("python\t5\t0\t0\t");
  }

  @Test
  void reasonsAreDistinctAndOnOneLine() {
    assertThat(linesOf(Aborted.class)).containsExactly("java\t0\t0\t3\tno moon; no sun");
  }

  @Test
  void everyTestOfSkippedClassCounts() {
    assertThat(linesOf(Skipped.class)).containsExactly("system\t0\t0\t3\tnot today");
  }

  @Test
  void everyTestOfClassWhoseSetUpGaveUpCounts() {
    assertThat(linesOf(GaveUp.class)).containsExactly("torch\t0\t0\t2\tno torch");
  }

  @Test
  void untaggedTestIsAnErrorNamedOnce() {
    assertThat(linesOf(Untagged.class))
        .singleElement()
        .asString()
        .startsWith("error\t0\t0\t0\t" + Untagged.class.getName() + ".values needs")
        .endsWith("has none");
  }

  @Test
  void secondTagIsAnError() {
    assertThat(linesOf(TaggedTwice.class))
        .singleElement()
        .asString()
        .endsWith("has java and python");
  }

  private List<String> linesOf(Class<?> tests) {
    // Not the registered listener: these tests are no part of the real table.
    LauncherConfig config =
        LauncherConfig.builder()
            .enableTestExecutionListenerAutoRegistration(false)
            .addTestExecutionListeners(new TagListener(folder))
            .build();
    LauncherFactory.create(config)
        .execute(LauncherDiscoveryRequestBuilder.request().selectors(selectClass(tests)).build());
    try (Stream<Path> files = Files.list(folder)) {
      return Files.readAllLines(files.findFirst().orElseThrow());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Tag("torch")
  static class OneFails {
    @Test
    void passes() {}

    @Test
    void fails() {
      fail("on purpose");
    }
  }

  @Tag("python")
  static class Invocations {
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void parameterized(int value) {}

    @TestFactory
    Stream<DynamicTest> dynamic() {
      return Stream.of("a", "b").map(name -> DynamicTest.dynamicTest(name, () -> {}));
    }
  }

  @Tag("java")
  static class Aborted {
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void twice(int value) {
      abort("no\n\tmoon");
    }

    @Test
    void once() {
      abort("no sun");
    }
  }

  @Tag("system")
  @Disabled("not today")
  static class Skipped {
    @Test
    void one() {}

    @Test
    void two() {}

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void methodOfUnknownNumber(int value) {}
  }

  @Tag("torch")
  static class GaveUp {
    @BeforeAll
    static void setUp() {
      abort("no torch");
    }

    @Test
    void one() {}

    @Test
    void two() {}
  }

  static class Untagged {
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void values(int value) {}
  }

  @Tag("java")
  static class TaggedTwice {
    @Test
    @Tag("python")
    void test() {}
  }
}
