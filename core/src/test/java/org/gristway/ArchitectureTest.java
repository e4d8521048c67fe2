package org.gristway;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.lang.foreign.Linker;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Who may use whom: operating system and spools below chunks, below snapshots, below datasets. */
@Tag("java")
class ArchitectureTest {

  private static final JavaClasses CORE =
      new ClassFileImporter()
          .importUrl(Failure.class.getProtectionDomain().getCodeSource().getLocation());

  /** From the bottom up; a package uses the root and those before it, so there are no cycles. */
  private static final List<String> PACKAGES =
      List.of(
          "os",
          "spool",
          "chunk",
          "snapshot",
          "dataset",
          "pack",
          "counters",
          "plan",
          "plan.policy",
          "handover",
          "read");

  @Test
  void packages_use_only_those_below_them() {
    assertUsesNothingOf("org.gristway", PACKAGES);
    for (int i = 0; i < PACKAGES.size(); i++) {
      assertUsesNothingOf(
          "org.gristway." + PACKAGES.get(i), PACKAGES.subList(i + 1, PACKAGES.size()));
    }
  }

  @Test
  void spools_and_chunks_know_nothing_of_each_other() {
    assertUsesNothingOf("org.gristway.spool", List.of("os", "chunk"));
    assertUsesNothingOf("org.gristway.chunk", List.of("spool"));
  }

  @Test
  void every_package_has_its_place() {
    classes().should().resideInAnyPackage(names(PACKAGES)).check(CORE);
  }

  private static void assertUsesNothingOf(String user, List<String> others) {
    for (String other : others) {
      noClasses()
          .that()
          .resideInAPackage(user)
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.gristway." + other)
          .check(CORE);
    }
  }

  private static String[] names(List<String> packages) {
    return Stream.concat(
            Stream.of("org.gristway"), packages.stream().map(name -> "org.gristway." + name))
        .toArray(String[]::new);
  }

  @Test
  void only_one_package_makes_native_calls() {
    noClasses()
        .that()
        .resideOutsideOfPackage("org.gristway.os")
        .should()
        .dependOnClassesThat()
        .areAssignableTo(Linker.class)
        .check(CORE);
  }

  @Test
  void classes_have_names_that_say_something() {
    noClasses()
        .should()
        .haveNameMatching(".*(Utils?|Helper|Manager|Impl|Common|Abstract)([A-Z$].*)?")
        .check(CORE);
  }
}
